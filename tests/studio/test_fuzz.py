"""Whatever is sent to the API, after its own description, it answers: never with a 500."""

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

REQUESTS = int(os.environ.get("STUDIO_FUZZ", "60"))
WORDS = st.text(max_size=30) | st.sampled_from(["the l_st", "[]", "____", "a [3-1] b", "\x00", "𝄞", "../..", "null"])


def values(schema, parts, depth=0):
    """What a schema describes, and now and then what it does not."""
    if "$ref" in schema:
        return values(parts[schema["$ref"].split("/")[-1]], parts, depth)
    anything = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS
    if "anyOf" in schema:
        return st.one_of(*(values(one, parts, depth) for one in schema["anyOf"]))
    if "enum" in schema:
        return st.sampled_from(schema["enum"]) | WORDS
    kind = schema.get("type")
    if kind == "integer":
        low, high = schema.get("minimum", -5), schema.get("maximum", 2**40)
        return st.integers(low, min(high, low + 30)) | anything
    if kind == "number":
        return st.floats(-2, 6) | anything
    if kind == "boolean":
        return st.booleans() | anything
    if kind == "string":
        return WORDS | anything
    if kind == "array":
        return st.lists(values(schema.get("items", {}), parts, depth + 1), max_size=4) | anything
    if kind == "object":
        fields = {name: values(one, parts, depth + 1) for name, one in schema.get("properties", {}).items()}
        return st.fixed_dictionaries({}, optional=fields) | anything
    return anything


def routes(app):
    """(method, path, parameters, schema of the body) of every route."""
    described = app.openapi()
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            content = about.get("requestBody", {}).get("content", {})
            yield method, path, about.get("parameters", []), content.get("application/json", {}).get("schema")


@pytest.fixture(scope="module")
def keys(visitor):
    """Keys of things that are there."""
    table = visitor.post("/api/tables/example").json()["table"]
    visitor.done(f"/api/tables/{table}/fill", {})
    return [table, "none", "..", "%00", "a" * 50]


@pytest.mark.parametrize("share", range(4))
def test_no_request_is_answered_with_a_500(visitor, studio, keys, app, share):
    parts = app.openapi().get("components", {}).get("schemas", {})
    own = [one for n, one in enumerate(routes(app)) if n % 4 == share]
    strategies = [(one, st.none() if one[3] is None else values(one[3], parts)) for one in own]

    @settings(max_examples=REQUESTS // 4, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def fuzz(data):
        (method, path, parameters, schema), bodies = data.draw(st.sampled_from(strategies))
        for parameter in parameters:
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", data.draw(st.sampled_from(keys)))
        query = {one["name"]: data.draw(values(one["schema"], parts)) for one in parameters if one["in"] == "query"}
        options = {"params": {name: value for name, value in query.items() if value is not None}}
        if schema is not None:
            options["json"] = data.draw(bodies)
        if "{" not in path and "\x00" not in path:
            answer = visitor.client.request(method.upper(), path, **options)
            assert answer.status_code < 500, (method, path, options, answer.text)
            if answer.status_code == 202:  # what it began need not be finished
                visitor.client.delete(f"/api/jobs/{answer.json()['job']}")

    fuzz()
    assert not [job.events[-1] for job in studio.pool.jobs.values() if "a mistake in anyfill" in str(job.events[-1:])]
