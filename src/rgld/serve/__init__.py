"""Serving: a fitted model behind HTTP, one process and one port.

In: model files. Out: an ASGI application (`create_app`), which `rgld serve` runs with uvicorn. `app.py` has the
endpoints, `gate.py` what every request passes first, `bodies.py` reads a body within limits, `formats.py` makes a table
of it, `models.py` holds the models and notices new files, `metrics.py` counts, `problems.py` says what is wrong with a
request, `server.py` runs it all. This is the only room that imports Starlette, uvicorn and prometheus-client.
"""
