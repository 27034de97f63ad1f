"""Worked example 12: a product with a cast and a scale before it, and a bias, an activation and a reduction behind it, is the
same written with the graph API and recorded from a program: result and key."""

import tenon
from tenon.graph import heur_mode, pygraph


def test_12_a_product_between_its_prologue_and_its_epilogue():
    x, w, b = tenon.randn(192, 64).half(), tenon.randn(64, 96), tenon.randn(96)

    @tenon.compile(threshold=0)
    def program(x, w, b):
        return tenon.nn.functional.gelu((x.float() * 0.125) @ w + b).sum(1, keepdim=True)

    recorded = program(x, w, b)

    g = pygraph(intermediate_data_type=tenon.float32, compute_data_type=tenon.float32)
    tx, tw, tb = g.tensor_like(x, name="x"), g.tensor_like(w, name="w"), g.tensor_like(b, name="b")
    scaled = g.scale(input=tx, scale=g.tensor_scalar(0.125))
    y = g.reduction(input=g.gelu(g.bias(input=g.matmul(A=scaled, B=tw), bias=tb)), mode=tenon.graph.reduction_mode.ADD)
    y.set_dim([192, 1]).set_data_type(tenon.float32).set_output(True)
    g.build([heur_mode.A, heur_mode.FALLBACK])

    out = tenon.empty(192, 1)
    workspace = tenon.empty(max(g.get_workspace_size(), 1), dtype=tenon.uint8)
    g.execute({tx: x, tw: w, tb: b, y: out}, workspace)
    assert tenon.equal(out, recorded)
    assert tenon.equal(out, tenon.nn.functional.gelu((x.float() * 0.125) @ w + b).sum(1, keepdim=True))
    assert [segment["key"] for segment in program.explain().of("segment")] == [g.key()]
    # Nothing but the maths is part of a key.
    other = pygraph(compute_data_type=tenon.float32)
    other.exp(other.tensor_like(x)).set_output(True)
    other.build()
    assert other.key() != g.key()


def test_11_a_graph_by_sorted_pointers():
    """The graph of the custom operator of example 11, cached by shape, stride, dtype, configuration and device."""
    graphs = {}

    def scaled_norm(x, eps):
        key = (tuple(x.shape), x.stride(), x.dtype, eps, str(x.device))
        if key not in graphs:
            g = pygraph(io_data_type=x.dtype, compute_data_type=tenon.float32)
            y, _ = g.rmsnorm("INFERENCE", g.tensor_like(x).set_uid(1), epsilon=eps, scale=g.tensor(dim=[x.shape[-1]]).set_uid(2))
            y.set_uid(3).set_output(True)
            g.build()
            graphs[key] = g
        g = graphs[key]
        scale, out = tenon.ones(x.shape[-1]), tenon.empty_like(x)
        workspace = tenon.empty(max(g.get_workspace_size(), 64), dtype=tenon.uint8)
        assert g._get_variant_pack_uids_sorted() == [1, 2, 3]
        g._execute_with_ptrs([x.data_ptr(), scale.data_ptr(), out.data_ptr()], workspace)
        return out

    x = tenon.randn(4, 10)
    wanted = x / (x.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    for _ in range(3):
        assert tenon.allclose(scaled_norm(x, 1e-6), wanted, rtol=1e-5)
    assert len(graphs) == 1
    scaled_norm(x[::2], 1e-6)
    assert len(graphs) == 2
