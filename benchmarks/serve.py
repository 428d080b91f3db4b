"""The figures of docs/serve.md: `rgld serve` under load on the loopback device, one worker.

    python benchmarks/serve.py                      # prints every table, about five minutes
    python benchmarks/serve.py --only load soak     # some of them
    python benchmarks/serve.py --page docs/serve.md # and writes them into the page
    python benchmarks/serve.py --python OTHER/bin/python   # a Python that has rgld, FastAPI and MLflow, for `others`

In: nothing but seeds; needs `wrk` (Debian has it) and the extra 'serve'. Out: markdown tables. The server is kept on
one processor and the client on another, where `taskset` is there to do so. Other work on the machine makes the figures
worse: run it alone.
"""

import argparse
import collections
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import polars as pl

import rgld

SECONDS = 5
CONNECTIONS = 8
PACED_CONNECTIONS = 32
"""Connections of the client that sends at a fixed rate: so many that requests seldom wait for one."""
SERVER_CPU, CLIENT_CPU = "0", "1"
WRK = """
wrk.method = "POST"
wrk.headers["Content-Type"] = "{kind}"
wrk.body = io.open("{body}", "rb"):read("*a")
"""
FASTAPI = """
import sys
import pandas as pd, rgld, uvicorn
from fastapi import FastAPI
detector = rgld.load(sys.argv[1])
app = FastAPI()
@app.post("/v1/score")
def score(rows: list[dict]):
    return {"scores": detector.anomaly_score(pd.DataFrame(rows)).tolist()}
uvicorn.run(app, port=int(sys.argv[2]), log_level="error")
"""
PACED = """
import asyncio, json, sys, time
body, port, rate = open(sys.argv[1], "rb").read(), int(sys.argv[2]), float(sys.argv[3])
head = "POST /v1/score HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Type: application/json\\r\\nContent-Length: "
times = []

async def ask(free, due):
    reader, writer = await free.get()
    writer.write(f"{head}{len(body)}\\r\\n\\r\\n".encode() + body)
    answer = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
    assert b" 200 " in answer, answer
    await reader.readexactly(int(answer.split(b"content-length: ")[1].split(b"\\r\\n")[0]))
    times.append(time.perf_counter() - due)
    free.put_nowait((reader, writer))

async def main():
    free = asyncio.Queue()
    for _ in range(int(sys.argv[5])):
        free.put_nowait(await asyncio.open_connection("127.0.0.1", port))
    start = time.perf_counter() + 0.1
    async with asyncio.TaskGroup() as group:
        for i in range(int(sys.argv[4])):
            await asyncio.sleep(start + i / rate - time.perf_counter())
            group.create_task(ask(free, start + i / rate))

asyncio.run(main())
print(json.dumps(times))
"""
MLFLOW = """
import sys, mlflow.pyfunc, pandas as pd, rgld
class Served(mlflow.pyfunc.PythonModel):
    def load_context(self, context): self.detector = rgld.load(context.artifacts["model"])
    def predict(self, context, model_input): return self.detector.anomaly_score(model_input)
mlflow.pyfunc.save_model(sys.argv[2], python_model=Served(), artifacts={"model": sys.argv[1]}, pip_requirements=[])
"""


def trips(n: int, seed: int) -> pl.DataFrame:
    """Two numbers, a whole number, a category, a date and a column with gaps."""
    rng = np.random.default_rng(seed)
    distance = rng.gamma(2.0, 2.0, n).round(2)
    return pl.DataFrame(
        {
            "distance": distance,
            "fare": (3.0 + 2.5 * distance + rng.normal(0.0, 1.0, n)).round(2),
            "payment": rng.choice(["card", "cash", "other"], n, p=[0.7, 0.25, 0.05]),
            "passengers": rng.integers(1, 5, n),
            "pickup": [f"2024-01-{1 + i % 28:02d} {rng.integers(0, 24):02d}:00:00" for i in range(n)],
            "tip": np.where(rng.random(n) < 0.3, np.nan, rng.random(n).round(3)),
        }
    ).with_columns(pl.col("tip").fill_nan(None))


def pinned(cpu: str, command: list[str]) -> list[str]:
    return ["taskset", "-c", cpu, *command] if shutil.which("taskset") and (os.cpu_count() or 1) > 1 else command


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and of those that it started."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            found[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
    own, size = {pid}, 0
    while len(own) > size:
        size = len(own)
        own |= {child for child, fields in found.items() if int(fields[1]) in own}
    return sum(int(found[one][11]) + int(found[one][12]) for one in own) / os.sysconf("SC_CLK_TCK")


def machine(model: Path) -> list[list[str]]:
    """What the tables were made on, and how busy it was."""
    names = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    head = ["processor", "cores", "Python", "load average before"]
    versions = f"{sys.version_info.major}.{sys.version_info.minor}"
    return [head, [names[0] if names else "unknown", str(os.cpu_count()), versions, f"{os.getloadavg()[0]:.1f}"]]


class Server:
    """A server in a process of its own."""

    def __init__(self, model: Path, port: int = 0) -> None:
        command = [
            str(Path(sys.executable).parent / "rgld"),
            "serve",
            "--model",
            str(model),
            "--port",
            str(port),
            "--quiet",
        ]
        command += ["--jobs", "1", "--max-requests", "200"]
        self.process = subprocess.Popen(pinned(SERVER_CPU, command), stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if json.loads(line)["event"] == "listening":
                self.port = int(json.loads(line)["port"])
                return
        raise SystemExit("The server did not start.")

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal."""
        self.process.send_signal(number)
        self.process.wait()

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far."""
        return cpu_seconds(self.process.pid)

    @property
    def memory(self) -> float:
        """MiB in memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


def wrk(
    port: int, path: str, body: bytes, kind: str = "application/json", connections: int = CONNECTIONS
) -> tuple[float, float, float]:
    """Return requests a second, and the times that 50 % and 99 % of them took at most, in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "body").write_bytes(body)
        (Path(folder) / "post.lua").write_text(WRK.format(kind=kind, body=Path(folder) / "body"))
        command = [
            "wrk",
            "-t1",
            f"-c{connections}",
            f"-d{SECONDS}s",
            "--latency",
            "--timeout",
            "30s",
            "-s",
            f"{folder}/post.lua",
        ]
        out = subprocess.check_output(pinned(CLIENT_CPU, [*command, f"http://127.0.0.1:{port}{path}"]), text=True)
    if "Non-2xx" in out:
        raise SystemExit(out)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1])
    return rate, _ms(re.search(r"\n\s+50%\s+(\S+)", out)[1]), _ms(re.search(r"\n\s+99%\s+(\S+)", out)[1])


def _ms(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1.0, "s": 1e3}[unit]


def paced(port: int, body: bytes, rate: float) -> tuple[float, float]:
    """Return the times (50 %, 99 %) of one-row requests that are sent at a fixed rate, whether answered yet or not.

    This is an open loop: a request has a time at which it is due, and its own time counts from there, also if it had to
    wait for a connection. So a server that stops for a moment is charged for all requests of that moment. The client is
    a process of its own, on the client's processor.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "body").write_bytes(body)
        (Path(folder) / "client.py").write_text(PACED)
        arguments = [f"{folder}/body", str(port), str(rate), str(int(rate * SECONDS)), str(PACED_CONNECTIONS)]
        out = subprocess.check_output(pinned(CLIENT_CPU, [sys.executable, f"{folder}/client.py", *arguments]))
    return tuple(1000.0 * np.quantile(json.loads(out), [0.5, 0.99]))  # type: ignore[return-value]


def rows(n: int, seed: int = 5) -> bytes:
    return json.dumps(trips(n, seed).to_dicts()).encode()


def load(model: Path) -> list[list[str]]:
    """Requests of several kinds, as many as the server can answer."""
    lines = [["request", "requests a second", "requests a second of CPU time", "p50, ms", "p99, ms"]]
    csv = trips(1000, 5).write_csv().encode()
    arrow = Path(tempfile.mkstemp()[1])
    trips(1000, 5).write_ipc_stream(arrow)
    kinds = (
        ("one row, JSON", "/v1/score", rows(1), "application/json"),
        ("one row, JSON, one connection", "/v1/score", rows(1), "application/json"),
        ("1,000 rows, JSON", "/v1/score", rows(1000), "application/json"),
        ("1,000 rows, CSV", "/v1/score", csv, "text/csv"),
        ("1,000 rows, Arrow", "/v1/score", arrow.read_bytes(), "application/vnd.apache.arrow.stream"),
        ("one row explained", "/v1/explain", rows(1), "application/json"),
        ("1,000 rows, the top 20 explained", "/v1/explain?top=20", csv, "text/csv"),
        ("1,000 rows checked", "/v1/check", csv, "text/csv"),
    )
    arrow.unlink()
    with Server(model) as server:
        for name, path, body, kind in kinds:
            before = server.cpu
            rate, p50, p99 = wrk(server.port, path, body, kind, 1 if "one connection" in name else CONNECTIONS)
            per_cpu = rate * SECONDS / max(server.cpu - before, 0.01)
            lines.append([name, f"{rate:,.0f}", f"{per_cpu:,.0f}", f"{p50:.2f}", f"{p99:.2f}"])
            if name == "one row, JSON":
                half = rate / 2
                p50, p99 = paced(server.port, body, half)
                lines.append(["one row, JSON, at half of that rate", f"{half:,.0f}", "", f"{p50:.2f}", f"{p99:.2f}"])
    return lines


def soak(model: Path) -> list[list[str]]:
    """A million rows, in requests of 1,000 and one by one: memory before and after."""
    lines = [["rows so far", "memory, MiB"]]
    bodies = [rows(1000, seed) for seed in range(10)]
    single = rows(1)
    with Server(model) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port)

        def ask(body: bytes) -> None:
            connection.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200

        for i in range(1001):
            if i in (10, 250, 500, 1000):
                lines.append([f"{i * 1001:,}", f"{server.memory:.0f}"])
            ask(bodies[i % 10])
            ask(single)
    return lines


def malformed(model: Path, n: int = 10_000) -> list[list[str]]:
    """Damaged requests: the number of answers by status."""
    server = Server(model)
    rng = random.Random(0)
    table = trips(5, 1)
    arrow = Path(tempfile.mkstemp()[1])
    table.write_ipc_stream(arrow)
    good = {
        "application/json": json.dumps(table.to_dicts()).encode(),
        "text/csv": table.write_csv().encode(),
        "application/vnd.apache.arrow.stream": arrow.read_bytes(),
    }
    arrow.unlink()
    counts: collections.Counter[int] = collections.Counter()
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    for i in range(n):
        kind = list(good)[i % 3]
        body = bytearray(good[kind])
        # Every one is wrong: the first bytes are gone, or a column, or what it is said to be.
        wrong = rng.randrange(4)
        if wrong == 0:
            del body[: rng.randrange(5, len(body))]  # without its first four bytes, an Arrow stream is an old one
        elif wrong == 1:
            body = body[: len(body) // rng.randrange(2, 9)].replace(b"fare", b"fear")
        elif wrong == 2:
            body = bytearray(body.replace(b"distance", bytes(rng.choices(b"abcdefgh", k=8))))
        else:
            kind = rng.choice(["text/plain", "", "application/xml", f"application/{rng.randbytes(4).hex()}"])
        connection.request(
            "POST", rng.choice(["/v1/score", "/v1/explain", "/v1/check"]), bytes(body), {"Content-Type": kind}
        )
        answer = connection.getresponse()
        answer.read()
        counts[answer.status] += 1
    server.stop()
    return [["answer", "requests"], *([str(status), f"{count:,}"] for status, count in sorted(counts.items()))]


def killed(model: Path) -> list[list[str]]:
    """Killed and started again, three times, while eight clients ask and repeat what was not answered."""
    server = Server(model)
    port, expected = server.port, rgld.load(model).anomaly_score(trips(400, 5)).tolist()
    todo = [[json.dumps([row]).encode(), score] for row, score in zip(trips(400, 5).to_dicts(), expected, strict=True)]
    wrong, repeated, answered = [0], [0], [0]
    end = time.time() + 12

    def client(start: int) -> None:
        place = start
        while time.time() < end:
            body, score = todo[place % len(todo)]
            while True:
                try:
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
                    connection.request("POST", "/v1/score", body, {"Content-Type": "application/json"})
                    answer = json.loads(connection.getresponse().read())
                    break
                except (OSError, http.client.HTTPException, ValueError):
                    repeated[0] += 1
                    time.sleep(0.1)
            wrong[0] += answer["scores"] != [score]
            answered[0] += 1
            place += 8

    threads = [threading.Thread(target=client, args=(start,)) for start in range(8)]
    for thread in threads:
        thread.start()
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
        time.sleep(2)
        server.stop(number)
        server = Server(model, port)
    for thread in threads:
        thread.join()
    server.stop()
    head = ["requests answered", "attempts repeated", "wrong or lost answers"]
    return [head, [f"{answered[0]:,}", f"{repeated[0]:,}", f"{wrong[0]:,}"]]


def others(model: Path, python: str) -> list[list[str]]:
    """The same model behind a plain FastAPI function and behind MLflow's scoring server, one worker each."""
    head = ["server", "one row: requests a second", "a second of CPU time", "p50, ms", "p99, ms"]
    lines = [[*head, "1,000 rows: requests a second"]]
    with Server(model) as server:
        lines.append(_line("rgld serve", server.port, server.process.pid, "/v1/score", rows(1), rows(1000)))
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "app.py").write_text(FASTAPI)
        process = subprocess.Popen(pinned(SERVER_CPU, [python, f"{folder}/app.py", str(model), "8123"]))
        if _wait(8123, process):
            lines.append(_line("FastAPI, ten lines", 8123, process.pid, "/v1/score", rows(1), rows(1000)))
        process.terminate()
        process.wait()
        (Path(folder) / "save.py").write_text(MLFLOW)
        saved = f"{folder}/saved"
        if subprocess.run([python, f"{folder}/save.py", str(model), saved], check=False).returncode == 0:
            command = [
                python,
                "-m",
                "mlflow",
                "models",
                "serve",
                "-m",
                saved,
                "-p",
                "8124",
                "--env-manager",
                "local",
                "-w",
                "1",
            ]
            path = os.pathsep.join((str(Path(python).parent), os.environ["PATH"]))
            process = subprocess.Popen(
                pinned(SERVER_CPU, command), env={**os.environ, "PATH": path}, start_new_session=True
            )
            if _wait(8124, process):
                bodies = (json.dumps({"dataframe_records": json.loads(rows(n))}).encode() for n in (1, 1000))
                lines.append(_line("MLflow's scoring server", 8124, process.pid, "/invocations", *bodies))
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
    return lines


def _wait(port: int, process: subprocess.Popen[bytes]) -> bool:
    for _ in range(300):
        time.sleep(0.2)
        if process.poll() is not None:
            return False
        try:
            http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()
        except OSError:
            continue
        return True
    return False


def _line(name: str, port: int, pid: int, path: str, one: bytes, many: bytes) -> list[str]:
    before = cpu_seconds(pid)
    rate, p50, p99 = wrk(port, path, one)
    per_cpu = f"{rate * SECONDS / max(cpu_seconds(pid) - before, 0.01):,.0f}"
    rate_of_many, _, _ = wrk(port, path, many)
    return [name, f"{rate:,.0f}", per_cpu, f"{p50:.2f}", f"{p99:.2f}", f"{rate_of_many:,.1f}"]


TABLES = {"machine": machine, "load": load, "soak": soak, "malformed": malformed, "killed": killed, "others": others}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--page", type=Path, help="a page with a comment <!-- name --> where each table belongs")
    parser.add_argument(
        "--python", help="a Python that has rgld, FastAPI and MLflow: without it the table `others` is left out"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "trips.rgld"
        rgld.RGLD.plus(calibration_fraction=0.2, random_state=0).fit(trips(5000, 0)).save(model)
        for name in arguments.only:
            if name == "others" and not arguments.python:
                print("\nothers: left out, it needs --python")
                continue
            more = (arguments.python,) if name == "others" else ()
            head, *rest = TABLES[name](model, *more)
            table = "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *rest))
            print(f"\n## {name}\n\n{table}", flush=True)
            if arguments.page:
                text = arguments.page.read_text("utf-8")
                new, count = re.subn(
                    rf"(<!-- {name} -->\n\n)(\|.*\n)*", lambda found, t=table: f"{found[1]}{t}\n", text
                )
                if count != 1:
                    raise SystemExit(f"{arguments.page} has no place for {name}.")
                arguments.page.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
