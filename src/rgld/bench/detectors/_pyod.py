"""What the detectors that come from PyOD share."""

NEEDS = {"pyod": "pip install 'rgld[bench]'"}
