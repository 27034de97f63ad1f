"""What an operator does with graphs and plans while it runs, for `tenon check-op` and `tenon bench overhead`."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _C, graph
from .._program.cached_plans import every_plan

if TYPE_CHECKING:
    from collections.abc import Callable


class Run(NamedTuple):
    """One execution of a graph that the operator's author wrote down."""

    graph: Any  #: The library's object, which is also its identity.
    addresses: dict[int, int]  #: Of tensors, by UID.
    workspace: range | None  #: Its addresses.


class Watch:
    """Replaces the functions that graphs are built and run with, while it is active. Plans of `cached_plan` run in C++; their
    counts tell what happened."""

    def __init__(self, on_run: Callable[[Run], None] | None = None) -> None:
        self.built = self.orders = self.by_pointers = self.by_pack = self.handles = 0
        self.automatic: set[str] = set()
        self.workspaces: list[Any] = []
        self.plans: list[Any] = []
        self.runs: list[Run] = []
        self.needs_workspace = False
        self._on_run = on_run

    def __enter__(self) -> Watch:
        self._builder = graph._builder
        self._make_handle = graph.Handle.__init__
        self._counts = {plan: plan.cache_info() for plan in every_plan}
        self._replaced = graph._replaced_builder(
            build_plans=self._building(self._builder.build_plans),
            build_plan=self._building(self._builder.build_plan),
            deserialize=self._building(self._builder.deserialize),
            uids=self._uids,
            execute=self._execute,
            execute_ptrs=self._execute_ptrs,
        )
        self._replaced.__enter__()
        watch = self

        def make_handle(handle: Any, *args: Any, **kwargs: Any) -> None:
            watch.handles += 1
            watch._make_handle(handle, *args, **kwargs)

        graph.Handle.__init__ = make_handle  # type: ignore[method-assign, assignment]
        return self

    def _building(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def build(*args: Any) -> Any:
            self.built += 1
            return function(*args)

        return build

    def _uids(self, g: Any) -> Any:
        self.orders += 1
        return self._builder.uids(g)

    def _execute(self, g: Any, pack: Any, workspace: Any, *rest: Any) -> Any:
        self.by_pack += 1
        self._ran(g, pack, workspace)
        return self._builder.execute(g, pack, workspace, *rest)

    def _execute_ptrs(self, g: Any, addresses: Any, workspace: Any, *rest: Any) -> Any:
        self.by_pointers += 1
        self._ran(g, dict(zip(self._builder.uids(g), addresses)), workspace)
        return self._builder.execute_ptrs(g, addresses, workspace, *rest)

    def __exit__(self, *error: Any) -> None:
        self._replaced.__exit__(*error)
        graph.Handle.__init__ = self._make_handle  # type: ignore[method-assign]
        for plan in every_plan:
            before, now = self._counts.get(plan, (0, 0)), plan.cache_info()
            if now[:2] == before[:2]:
                continue
            self.plans.append(plan)
            self.built += now.misses - before[1]
            self.by_pointers += now.hits + now.misses - before[0] - before[1]

    def _ran(self, g: Any, pack: Any, workspace: Any) -> None:
        addresses = {uid: _address(value) for uid, value in pack.items()}
        size = self._builder.workspace_size(g, None)
        self.needs_workspace |= size > 0
        if isinstance(workspace, _C.Tensor):
            self.workspaces.append(weakref.ref(workspace))
        start = _address(workspace)
        run = Run(g, addresses, range(start, start + max(size, 1)) if start else None)
        self.automatic |= {name or f"UID {uid}" for uid, name, _, own in self.tensors(g) if uid in addresses and not own}
        self.runs.append(run)
        if self._on_run:
            self._on_run(run)

    def tensors(self, g: Any) -> list[tuple[int, str, list[int], bool]]:
        """(UID, name, sizes, whether its author gave the UID) of every tensor of a graph."""
        found: list[tuple[int, str, list[int], bool]] = []
        while True:
            try:
                uid, name, dim, *_, own = self._builder.get(g, len(found))
            except IndexError:
                return found
            found.append((uid, name, dim, own))


def _address(value: Any) -> int:
    if isinstance(value, _C.Tensor):
        return 0 if value.is_meta else value.data_ptr()
    return value if isinstance(value, int) else 0
