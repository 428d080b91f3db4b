"""What the endpoints answer."""

import gzip
import io
import json

import numpy as np
import polars as pl
import pytest

from rgld import RGLD, load

from .conftest import trips
from .servers import running

ARROW = "application/vnd.apache.arrow.stream"


def arrow(frame):
    out = io.BytesIO()
    frame.write_ipc_stream(out)
    return out.getvalue()


def test_scores_are_those_of_the_model_to_the_bit(server, model):
    table = trips(300, 1)
    expected = load(model).anomaly_score(table).tolist()
    rows = table.to_dicts()
    assert server.post("/v1/score", rows).json["scores"] == expected
    assert server.post("/v1/score", {"rows": rows}).json["scores"] == expected
    assert server.post("/v1/score", [list(row.values()) for row in rows]).json["scores"] == expected
    assert server.post("/v1/score", table.write_csv().encode(), "text/csv").json["scores"] == expected
    assert server.post("/v1/score", arrow(table), ARROW).json["scores"] == expected
    packed = gzip.compress(json.dumps(rows).encode())
    assert server.post("/v1/score", packed, **{"Content-Encoding": "gzip"}).json["scores"] == expected
    alone = [server.post("/v1/score", [row]).json["scores"][0] for row in rows[:20]]
    assert alone == expected[:20]
    parts = [score for i in range(0, 300, 70) for score in server.post("/v1/score", rows[i : i + 70]).json["scores"]]
    assert parts == expected


def test_an_answer_in_arrow(server, model):
    table = trips(50, 2)
    answer = server.post("/v1/score", table.to_dicts(), Accept=ARROW)
    assert answer.headers["content-type"] == ARROW
    frame = pl.read_ipc_stream(io.BytesIO(answer.body))
    assert frame["score"].to_list() == load(model).anomaly_score(table).tolist()
    assert frame["p_value"].to_list() == load(model).p_values(table).tolist()
    assert frame["above_threshold"].dtype == pl.Boolean
    explained = server.post("/v1/explain?top=3", table.to_dicts(), Accept=ARROW)
    assert pl.read_ipc_stream(io.BytesIO(explained.body)).columns == ["row", "score", "kind", "reasons"]


def test_the_answer_says_which_model_and_threshold(server, detector):
    content = server.post("/v1/score", trips(3, 3).to_dicts()).json
    assert content["model"] == "trips" and len(content["version"]) == 16
    assert content["threshold"] == -detector.offset_
    assert content["above_threshold"] == [score > content["threshold"] for score in content["scores"]]
    assert content["p_values"] == detector.p_values(trips(3, 3)).tolist()


def test_columns_that_the_model_does_not_use_may_be_left_out_and_others_are_ignored(server, detector):
    assert detector.columns_[0].kind == "dropped"
    table = trips(5, 4)
    expected = detector.anomaly_score(table).tolist()
    other = table.drop("trip").with_columns(pl.lit("x").alias("more"))
    assert server.post("/v1/score", other.to_dicts()).json["scores"] == expected
    assert server.post("/v1/score", other.write_csv().encode(), "text/csv").json["scores"] == expected
    assert server.post("/v1/score", arrow(other), ARROW).json["scores"] == expected
    text = other.write_csv(separator=";").encode("utf-8-sig")
    assert server.post("/v1/score", text, "text/csv; charset=utf-8").json["scores"] == expected


def test_explanations(server, detector):
    table = trips(80, 5)
    content = server.post("/v1/explain?top=4", table.to_dicts()).json
    order = np.argsort(-detector.anomaly_score(table), kind="stable")[:4]
    assert [row["row"] for row in content["rows"]] == order.tolist() and content["n_rows"] == 80
    expected = detector.explain(table[order])
    assert content["rows"][0]["reasons"] == expected.reasons(0)
    assert content["rows"][0]["contributions"]["fare"] == pytest.approx(expected.contributions[0][2])
    assert len(server.post("/v1/explain", table[:6].to_dicts()).json["rows"]) == 6


def test_check(server, detector):
    table = trips(400, 6)
    assert server.post("/v1/check", table.to_dicts()).json["verdict"] == "fine"
    cents = table.with_columns(pl.col("fare") * 100)
    content = server.post("/v1/check?alpha=0.001", cents.write_csv().encode(), "text/csv").json
    assert (content["schema"], content["version"], content["verdict"]) == ("rgld-check", 1, "drift")
    assert content["reasons"][0].endswith("100 times as high: another unit?")


def test_report(server):
    answer = server.post("/v1/report", trips(100, 7).write_csv().encode(), "text/csv")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b'"drift":{"title":"Still like the training table"' in answer.body


def test_model_and_openapi(server):
    content = server.get("/v1/model").json
    assert [column["kind"] for column in content["columns"]] == [
        "dropped",
        "number",
        "number",
        "category",
        "time",
        "number",
    ]
    assert content["columns"][3]["values"] == ["card", "cash", "other"]
    assert server.get("/v1/models").json["models"][0]["model"] == "trips"
    described = server.get("/openapi.json").json
    assert described["openapi"].startswith("3.1")
    for path, methods in described["paths"].items():
        for method in methods:
            assert server.ask(method.upper(), path, b"" if method == "post" else None).status in (200, 400)


def test_health_and_metrics(server):
    assert server.get("/healthz").body == server.get("/readyz").body == b"ok\n"
    before = metrics(server)
    table = trips(70, 8)
    above = sum(server.post("/v1/score", table.to_dicts()).json["above_threshold"])
    server.post("/v1/score", b"[")
    after = metrics(server)

    def grown(name):
        return after.get(name, 0.0) - before.get(name, 0.0)

    assert grown('rgld_rows_total{model="trips"}') == 70
    assert grown('rgld_rows_above_threshold_total{model="trips"}') == above
    assert grown('rgld_requests_total{endpoint="/v1/score",status="200"}') == 1
    assert grown('rgld_requests_total{endpoint="/v1/score",status="400"}') == 1
    assert 'rgld_drift_log10_wealth{model="trips"}' in after


def test_bets_are_fair_to_requests_in_any_order():
    """A client may send a day's rows in the order of their dates, with which the scores rise."""
    from rgld._drift.sequence import Watch
    from rgld.serve.models import WATCHED_ROWS, Served

    rng = np.random.default_rng(0)
    highest = []
    for _ in range(100):
        served = Served("m", None, "", Watch.begin(rng.random(200)))
        for _ in range(20):
            served.bet(np.sort(rng.random(200)))
        served.settle()
        assert served.watch.n_rows == 20 * WATCHED_ROWS
        highest.append(served.watch.highest)
    assert np.mean(np.array(highest) >= np.log(20)) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)
    single = Served("m", None, "", Watch.begin(rng.random(200)))
    for score in (0.5, 0.9):
        single.bet(np.array([score]))
    assert single._waiting == [0.5, 0.9]


def metrics(server):
    lines = server.get("/metrics").body.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_rows_that_change_are_seen_in_the_metrics(model):
    with running("--model", model, "--quiet") as server:
        cents = trips(200, 9).with_columns(pl.col("fare") * 100).to_dicts()
        for i in range(0, 200, 10):
            server.post("/v1/score", cents[i : i + 10])
        assert metrics(server)['rgld_drift_log10_highest{model="trips"}'] > 3.0
        server.stop()
        assert not any('"request"' in line for line in server.lines)


def test_a_model_without_column_names(tmp_path):
    X = np.random.default_rng(0).normal(size=(300, 3))
    detector = RGLD.fast(random_state=0).fit(X)
    detector.save(tmp_path / "plain model.rgld")
    with running("--model", tmp_path / "plain model.rgld") as server:
        content = server.post("/v1/score", [[0.5, None, 1], [1, 2, 3.25]]).json
        assert content["model"] == "plain-model" and content["p_values"] is None
        assert content["scores"] == detector.anomaly_score(np.array([[0.5, np.nan, 1], [1, 2, 3.25]])).tolist()
        assert server.post("/v1/score", b"a,b,c\n0.5,,1\n1,2,3.25\n", "text/csv").json["scores"] == content["scores"]
        assert server.post("/v1/score", [[1, 2]]).status == 422
        assert server.post("/v1/score", [[1, 2, "x"]]).json["detail"].startswith("Column 2 holds something else")
        assert server.post("/v1/score", [{"a": 1}]).status == 422
