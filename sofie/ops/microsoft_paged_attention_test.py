"""PagedAttention of com.microsoft, which ONNX Runtime lacks on CPUs: against NumPy."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from sofie.importer.errors import ModelError
from sofie.testing import interpreter
from sofie.testing.operators import Array, Dims, compile_graph, graph, hold

_HEADS, _KEY_HEADS, _DEPTH, _BLOCK = 4, 2, 8, 3
# New tokens of each sequence, and how many it has in the caches.
_BATCHES = [([3, 0, 5], [0, 4, 7]), ([1, 1, 1, 1], [8, 0, 2, 3]), ([10], [0]), ([], [])]
_PAGES = 4
_CACHE: Dims = ["N", _BLOCK, _KEY_HEADS, _DEPTH]


def _inputs(
    *, joined: bool = False, rotary: bool = False, slots: bool = False, dtype: str = "float32"
) -> dict[str, tuple[str, Dims]]:
    width, key_width = _HEADS * _DEPTH, _KEY_HEADS * _DEPTH
    inputs: dict[str, tuple[str, Dims]] = {
        "q": (dtype, ["T", width + 2 * key_width if joined else width])
    }
    if not joined:
        inputs |= {name: (dtype, ["T", key_width]) for name in "kv"}
    inputs |= {f"{name}_cache": (dtype, _CACHE) for name in "kv"}
    inputs |= {
        "ends": ("int32", ["E"]),
        "past": ("int32", ["B"]),
        "table": ("int32", ["B", "P"]),
    }
    if rotary:
        inputs |= {name: (dtype, [_PAGES * _BLOCK, _DEPTH // 2]) for name in ("cos", "sin")}
    if slots:
        inputs["slots"] = ("int32", ["T"])
    return inputs


def _model(
    *,
    joined: bool = False,
    rotary: bool = False,
    slots: bool = False,
    outputs: int = 3,
    dtype: str = "float32",
    **attributes: Any,
) -> onnx.ModelProto:
    inputs = _inputs(joined=joined, rotary=rotary, slots=slots, dtype=dtype)
    wanted = ["q", "k", "v", "k_cache", "v_cache", "ends", "past", "table", "cos", "sin", "slots"]
    node = helper.make_node(
        "PagedAttention",
        [name if name in inputs else "" for name in wanted],
        ["y", "k_out", "v_out"][:outputs],
        domain="com.microsoft",
        num_heads=_HEADS,
        kv_num_heads=_KEY_HEADS,
        do_rotary=int(rotary),
        **attributes,
    )
    shapes: dict[str, tuple[str, Dims]] = {"y": (dtype, ["T", _HEADS * _DEPTH])}
    if outputs > 1:
        shapes |= {f"{name}_out": (dtype, _CACHE) for name in "kv"}
    return graph([node], inputs, shapes, domains={"com.microsoft": 1}, opset=17)


def _cases(*, hole: bool = False, slots: bool = False) -> list[dict[str, int | Array]]:
    """Blocks are the sequences' in no order; a hole: a block that no sequence has any more."""
    random = np.random.default_rng(7)
    cases: list[dict[str, int | Array]] = []
    for new, past in _BATCHES:
        batch = len(new)
        blocks = batch * _PAGES + 2
        table = random.permutation(blocks)[: batch * _PAGES].reshape(batch, _PAGES)
        if hole and batch:
            table[0, 0] = -1
            table[-1, 2] = -1
        ends = np.cumsum([0, *new]).astype(np.int32)
        case: dict[str, int | Array] = {
            "T": int(ends[-1]),
            "N": blocks,
            "B": batch,
            "E": batch + 1,
            "P": _PAGES,
            "ends": ends,
            "past": np.array(past, np.int32),
            "table": table.astype(np.int32),
        }
        if slots:
            chosen = random.permutation(blocks * _BLOCK)[: int(ends[-1])].astype(np.int32)
            chosen[:1] = -1
            case["slots"] = chosen
        cases.append(case)
    return cases


def _turned(x: Array, position: int, cos: Array, sin: Array, interleaved: bool) -> Array:
    first, second = (x[..., ::2], x[..., 1::2]) if interleaved else np.split(x, 2, axis=-1)
    a = first * cos[position] - second * sin[position]
    b = first * sin[position] + second * cos[position]
    return np.stack([a, b], -1).reshape(x.shape) if interleaved else np.concatenate([a, b], -1)


def _reference(
    *,
    scale: float = _DEPTH**-0.5,
    window: int = -1,
    causal: bool = True,
    cap: float = 0.0,
    interleaved: bool = False,
    outputs: int = 3,
) -> Any:
    def sequence(
        item: int, inputs: Mapping[str, Array], parts: list[Array], caches: list[Array]
    ) -> Array:
        """Writes a sequence's new rows into the caches; then they are all that is read."""
        begin, end = inputs["ends"][item : item + 2]
        past, table = int(inputs["past"][item]), inputs["table"][item]
        query = parts[0][begin:end].astype(np.float64)
        for i in range(end - begin):
            key, position = parts[1][begin + i], past + i
            if "cos" in inputs:
                tables = inputs["cos"], inputs["sin"]
                query[i] = _turned(query[i], position, *tables, interleaved)
                key = _turned(key, position, *tables, interleaved)
            block = table[position // _BLOCK]
            slot = block * _BLOCK + position % _BLOCK if block >= 0 else -1
            if "slots" in inputs:
                slot = inputs["slots"][begin + i]
            if slot >= 0:
                place = divmod(int(slot), _BLOCK)
                caches[0][place], caches[1][place] = key, parts[2][begin + i]
        return query

    def attend(item: int, inputs: Mapping[str, Array], query: Array, caches: list[Array]) -> Array:
        past, table = int(inputs["past"][item]), inputs["table"][item]
        result = np.zeros_like(query)
        for i in range(len(query)):
            last = past + i if causal else past + len(query) - 1
            low = max(0, past + i - window + 1) if window > 0 else 0
            rows = [j for j in range(low, last + 1) if table[j // _BLOCK] >= 0]
            if not rows:
                continue
            keys, values = (
                np.stack([cache[table[j // _BLOCK], j % _BLOCK] for j in rows]).astype(np.float64)
                for cache in caches
            )
            for head in range(_HEADS):
                group = head // (_HEADS // _KEY_HEADS)
                scores = scale * keys[:, group] @ query[i, head]
                if cap:
                    scores = cap * np.tanh(scores / cap)
                weights = np.exp(scores - scores.max())
                result[i, head] = weights @ values[:, group] / weights.sum()
        return result

    def run(inputs: Mapping[str, Array]) -> list[Array]:
        tokens = len(inputs["q"])
        if "k" in inputs:
            parts = [inputs[name] for name in "qkv"]
        else:
            ends = np.cumsum([_HEADS, _KEY_HEADS]) * _DEPTH
            parts = np.split(inputs["q"], ends, axis=1)
        parts = [part.reshape(tokens, part.shape[1] // _DEPTH, _DEPTH) for part in parts]
        caches = [inputs[f"{name}_cache"].copy() for name in "kv"]
        queries = [sequence(item, inputs, parts, caches) for item in range(len(inputs["past"]))]
        result = np.zeros((tokens, _HEADS, _DEPTH))
        for item, query in enumerate(queries):
            begin, end = inputs["ends"][item : item + 2]
            result[begin:end] = attend(item, inputs, query, caches)
        dtype = inputs["q"].dtype
        return [result.reshape(tokens, _HEADS * _DEPTH).astype(dtype), *caches][:outputs]

    return run


def _hold(model: onnx.ModelProto, cases: list[dict[str, int | Array]], reference: Any) -> None:
    program = hold(model, cases, reference=reference)
    assert sum(type(step).__name__ == "Attention" for step in program.steps) == 1


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_operands(joined: bool, outputs: int) -> None:
    _hold(_model(joined=joined, outputs=outputs), _cases(), _reference(outputs=outputs))


@pytest.mark.parametrize(
    ("attributes", "meaning"),
    [
        ({"scale": 0.7}, {"scale": 0.7}),
        ({"softcap": 0.5}, {"cap": 0.5}),
        ({"local_window_size": 4}, {"window": 4}),
        ({"is_causal": 0}, {"causal": False}),
        ({"is_causal": 0, "local_window_size": 2}, {"causal": False, "window": 2}),
    ],
    ids=str,
)
def test_attributes(attributes: dict[str, Any], meaning: dict[str, Any]) -> None:
    _hold(_model(**attributes), _cases(), _reference(**meaning))


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embeddings(interleaved: bool) -> None:
    model = _model(rotary=True, rotary_interleaved=int(interleaved))
    _hold(model, _cases(), _reference(interleaved=interleaved))


def test_pages_without_a_block_are_not_seen() -> None:
    _hold(_model(), _cases(hole=True), _reference())


def test_slots_of_an_input() -> None:
    _hold(_model(slots=True), _cases(slots=True), _reference())


@pytest.mark.parametrize("past", [-5, 4, 1000])
def test_lengths_beyond_the_table_stay_inside_of_memory(past: int) -> None:
    """The interpreter fails at accesses outside of buffers. Blocks of others are not written."""
    (case,) = [case for case in _cases() if case["B"] == 1]
    program = compile_graph(_model())
    random = np.random.default_rng(3)
    sizes = {name: extent for name, extent in case.items() if isinstance(extent, int)}
    inputs: dict[str, Array] = {}
    for name, (dtype, extents) in _inputs().items():
        shape = [sizes[x] if isinstance(x, str) else x for x in extents]
        inputs[name] = random.standard_normal(shape).astype(dtype)
    inputs |= {name: x for name, x in case.items() if not isinstance(x, int)}
    inputs["past"] = np.array([past], np.int32)
    _, *caches = interpreter.run(program, inputs)
    others = np.setdiff1d(np.arange(sizes["N"]), inputs["table"])
    assert len(others) == 2
    for name, cache in zip("kv", caches, strict=True):
        np.testing.assert_array_equal(cache[others], inputs[f"{name}_cache"][others])


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"kv_cache_layout": "LATENT"}, "one cache for keys and values"),
        ({"rotary_offset": 8}, "not the first ones"),
    ],
)
def test_refused(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        compile_graph(_model(**attributes))
