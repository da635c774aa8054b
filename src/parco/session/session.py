"""One release, from question to receipt, in the only order that keeps the promise.

    plan      mechanism and cost, from contract and question alone
    check     names and types of the file
    begin     the charge, durable before a row is read; or the stored answer
    run       exact bounded integers
    draw      one exact integer of noise a cell
    settle    durable before anyone sees the answer

A crash between begin and settle costs budget and never privacy. A failure there is a forfeit: the charge stands and
the message is constant, because why it failed may depend on somebody's row.
"""

from __future__ import annotations

import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from parco import canonical
from parco.contract.contract import Contract
from parco.contract.fields import label
from parco.errors import BusyError, ContractChangedError, ForfeitedError, QuestionError, RequestError, SharperError
from parco.ledger import points
from parco.ledger.entries import Charge, MechanismFacts, SensitivityFacts
from parco.measure import COST_UNIT, DELTA_UNIT, Cost, Exactable, Measure, decimal_text
from parco.mechanisms.mechanism import Additive, Exponential, Mechanism
from parco.mechanisms.selection import Selection
from parco.noise.bits import BitSource, CipherBits
from parco.privacy.claim import Claim
from parco.queries.joint import BoundsPlan, MeanPlan, QuantilePlan, VariancePlan
from parco.queries.plan import Also, Plan, Spend
from parco.queries.quantile import runs
from parco.queries.query import Query
from parco.session.accesses import Accesses
from parco.session.actor import default_actor
from parco.session.ask import Ask
from parco.session.bounds import BoundsAnswer, bounds_release
from parco.session.correcting import Correcting
from parco.session.keys import keys_answer
from parco.session.lifetime import Lifetime, lifetime_of
from parco.session.mean import MeanAnswer, mean_release
from parco.session.quantile import QuantileAnswer, quantile_release
from parco.session.questions import (
    JOINT,
    Asked,
    How,
    Questions,
    Shares,
    bounds_cover,
    bounds_parts,
    joint_parts,
    mean_parts,
    quantile_parts,
    variance_parts,
)
from parco.session.receipt import Receipt, claims_to_date, mechanism_in, receipt_of
from parco.session.refining import Refiner, refined_answer
from parco.session.release import Answer, Release
from parco.session.schedules import Standing, applied, scheduled_on, standing
from parco.session.top import top_answer
from parco.session.variance import VarianceAnswer, variance_release

if TYPE_CHECKING:
    from parco.engines.duckdb import DuckDBEngine, Found
    from parco.stores.records import AccountRow, HistoryRow, QuotaRow, Request, Settled, Stored

__all__ = ["Planner", "Session", "default_actor", "default_ledger"]

E = TypeVar("E")
Progress = Callable[[str, int, int], None]
Joint = Release[MeanAnswer] | Release[VarianceAnswer] | Release[QuantileAnswer] | Release[BoundsAnswer]
JointPlans = MeanPlan | VariancePlan | QuantilePlan | BoundsPlan

_FAILED = (
    "the release failed after its charge: the charge stands. Why it failed is not told, since that could depend on "
    "somebody's row; `parco history` shows it as forfeited, and asking again is a new charge"
)
_POLL_SECONDS = 0.05
_WAIT_SECONDS_MAX = 3600.0


class Session(
    Correcting,
    Questions[
        Release[Answer], Release[MeanAnswer], Release[VarianceAnswer], Release[QuantileAnswer], Release[BoundsAnswer]
    ],
):
    """One actor's door to one data set under one signed contract; a context manager, safe to share among threads.

    contract: as read from its file. data: a CSV or Parquet file, a folder of such files, or a frame (a
    pyarrow.Table, pandas.DataFrame or polars.DataFrame), by default the contract's source. ledger: the file
    that `parco sign` made, by default `<name>.ledger` beside the contract, or the postgresql:// URL of a database.
    actor: who asks, by default the login name. version: the declared label of the data's state, by default the
    contract's. schedule: the name of a signed schedule that all releases are drawn from. progress: called as (stage,
    done, total) while a release runs. Raises NotSignedError, ContractChangedError or StorageError.
    """

    def __init__(
        self,
        contract: Contract,
        *,
        data: str | Path | Any = None,  # noqa: ANN401 - a frame of a library that may not be installed
        ledger: str | Path | None = None,
        actor: str | None = None,
        version: str | None = None,
        schedule: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        from parco.stores.address import open_ledger

        self.contract = contract
        self.version = contract.data.version if version is None else label(version, "version")
        self.actor = label(default_actor() if actor is None else actor, "actor")
        self._data = data
        self._progress = progress or _no_progress
        self._store = open_ledger(default_ledger(contract) if ledger is None else ledger)
        self._signed = self._store.signed(contract.data.name, contract.name)
        if self._signed.text != contract.text:
            raise ContractChangedError(
                f"the contract {contract.name} differs from the one that was signed on this ledger: restore the signed "
                "text; or make the new one its next version with `parco revise` (`parco cap` where the budget's amount "
                "differs); or give it another name at its top, keep the name in [data], and sign it"
            )
        self._schedule = None if schedule is None else scheduled_on(self._store.schedule(schedule), contract)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Closes this thread's connection to the ledger; a session that is used again opens another."""
        self._store.close()

    @property
    def plan(self) -> Planner:
        """The same questions, answered with what they would cost: `session.plan.count(...)` spends nothing."""
        return Planner(self)

    def budget(self) -> list[AccountRow]:
        """The ledger's accounts as they stand."""
        return self._store.accounts()

    def quotas(self) -> list[QuotaRow]:
        """The quotas in force on the ledger, each with every account that it limits."""
        return self._store.quotas()

    def lifetime(self) -> Lifetime:
        """The most that one unit can have lost by all releases so far, in every period together."""
        rows = [row for row in self._store.accounts() if row.account in self._signed.accounts.values()]
        return lifetime_of(self.contract, rows)

    def history(self) -> list[HistoryRow]:
        """All signings and releases, in the order of the ledger."""
        return self._store.history()

    def claims(self) -> tuple[Claim, ...]:
        """What may be claimed of the data set to date: its cap, what was released, and the schedule that it keeps to.

        The last is there while all releases were drawn from schedules that were signed before the first of them.
        """
        found = self.standing()
        kept = () if found is None or found.claim is None else (found.claim,)
        return (*claims_to_date(self.contract, *self._rows()), *kept)

    def standing(self) -> Standing | None:
        """How the data set stands to the schedules signed before its first release; None if there is none."""
        return standing(self._store, self.contract, self._rows())

    def _rows(self) -> list[AccountRow]:
        own = set(self._signed.accounts.values())
        return [row for row in self._store.accounts() if row.account in own]

    def accesses(self) -> Accesses:
        """How often the ledger's data were read, for what, and how often an answer was given without them."""
        return Accesses.of(self._store.history(), self._store.repeats())

    def release(self, asks: Sequence[Ask]) -> list[Release[Answer] | Joint]:
        """The answers to several questions, in their order: one durable charge and one statement for all.

        What is stored is free. All others are charged together or none is, and a failure behind the charge forfeits
        them all.
        """
        groups = [self._parts(ask) for ask in asks]
        found = iter(self._all([part for group in groups for part in group]))
        return [self._whole(ask, group, [next(found) for _ in group]) for ask, group in zip(asks, groups, strict=True)]

    def refine(
        self,
        release: Release[Any] | int,
        *,
        error: Exactable | None = None,
        cost: Exactable | None = None,
        confidence: Exactable | None = None,
    ) -> Release[Answer]:
        """A stored answer made sharper for the difference in cost; by nothing where a stored one is sharp enough.

        release: the answer, or its number on the ledger; where it was refined before, the last of its path is refined.
        error: the half-width that each interval has to reach. cost: the most to pay beyond what `release` (and what it
        refined) did; asked twice, it is paid once. Give one of them. The data, version and contract have to be those
        of the answer, or it is another question. RequestError for what cannot be refined, and why: only Gaussian noise,
        and two-sided geometric noise on accounts of the measure pure. Source: docs/mathematics.md, "Refinement by
        Gaussian draws" and "Refinement of geometric noise".
        """
        spend = Spend.of(cost=cost, error=error, confidence=confidence)
        return Refiner(self, release).release(spend)

    def _ask(self, ask: Asked) -> Release[Answer]:
        return self._all([ask])[0]

    def _mean(self, ask: Asked, split: Exactable | None) -> Release[MeanAnswer]:
        parts = mean_parts(ask, split)
        return mean_release(self._plan(parts[0]).query, *self._all(parts))

    def _variance(self, ask: Asked) -> Release[VarianceAnswer]:
        parts = variance_parts(ask)
        return variance_release(self._plan(parts[0]).query, *self._all(parts))

    def _quantile(self, ask: Asked, at: Shares) -> Release[QuantileAnswer]:
        parts = quantile_parts(ask, at)
        return quantile_release([part.at or Fraction(0) for part in parts], self._all(parts))

    def _bounds(self, ask: Asked, cover: Fraction) -> Release[BoundsAnswer]:
        parts = bounds_parts(ask, cover)
        return bounds_release([self._plan(part).query for part in parts], self._all(parts), cover=cover)

    def _whole(self, ask: Ask, asks: list[Asked], found: list[Release[Answer]]) -> Release[Answer] | Joint:
        match ask.statistic:
            case "mean":
                return mean_release(self._plan(asks[0]).query, *found)
            case "variance":
                return variance_release(self._plan(asks[0]).query, *found)
            case "quantile":
                return quantile_release([part.at or Fraction(0) for part in asks], found)
            case "suggest_bounds":
                return bounds_release([self._plan(part).query for part in asks], found, cover=bounds_cover(ask.cover))
        return found[0]

    def _parts(self, ask: Ask) -> list[Asked]:
        if not isinstance(ask, Ask):
            raise QuestionError('release takes a list of asks, such as [parco.Ask("count", by="month")]')
        how: How = {name: getattr(ask, name) for name in How.__annotations__}  # type: ignore[assignment]
        if ask.split is not None and ask.statistic != "mean":
            raise QuestionError("only a mean has two parts: leave out split")
        if ask.cover is not None and ask.statistic != "suggest_bounds":
            raise QuestionError("only suggested bounds leave a share as it is: leave out cover")
        if ask.k is not None and ask.statistic != "top":
            raise QuestionError("only a top says how many keys it names: leave out k")
        if ask.at is not None and ask.statistic != "quantile":
            raise QuestionError("only a quantile is asked at shares of the rows: leave out at")
        if ask.statistic in JOINT:
            read = self._read(ask.statistic, ask.column, how)
            return joint_parts(ask.statistic, read, split=ask.split, at=ask.at, cover=ask.cover)
        return [replace(self._read(ask.statistic, ask.column, how), k=ask.k)]

    def _all(self, asks: list[Asked]) -> list[Release[Answer]]:
        """The release of each question; everything that can be refused is refused before anything is charged."""
        plans = [self._plan(ask) for ask in asks]
        times = Counter(plan.question for plan in plans)
        stored: dict[str, Stored] = {}
        asked: dict[str, list[tuple[Plan, Asked]]] = {}
        for plan, ask in zip(plans, asks, strict=True):
            if ask.fresh and times[plan.question] > 1:
                raise QuestionError(f"{plan.query} is asked twice in one list: ask for a fresh answer alone")
            if not ask.fresh and ask.key is None:
                if found := self._stored(plan, ask):
                    stored[plan.question] = found
                    continue
                self._check_sharper(plan)
            asked.setdefault(plan.question, []).append((plan, ask))
        new, shown = self._answered([_serving_all(same) for same in asked.values()]), set[str]()
        releases = []
        for plan in plans:
            if plan.question in new and plan.question not in shown:
                releases.append(_at_level(new[plan.question], plan))
            elif plan.question in new:
                again = replace(_at_level(new[plan.question], plan), repeat=True, cost=Cost(0))
                releases.append(again)
            else:
                releases.append(self._repeat(stored[plan.question], plan))
            shown.add(plan.question)
        return releases

    def _answered(self, asked: list[tuple[Plan, Asked]]) -> dict[str, Release[Answer]]:
        """Charges questions together, reads once, and settles together; by question."""
        if not asked:
            return {}
        engine = self._engine([plan.query for plan, _ in asked])
        outcomes = self._begin(asked)
        started = {
            plan.question: (plan, outcome)
            for (plan, _), outcome in zip(asked, outcomes, strict=True)
            if isinstance(outcome, int)
        }
        found = self._run(list(started.values()), engine) if started else []
        released = dict(zip(started, found, strict=True))
        for (plan, _), outcome in zip(asked, outcomes, strict=True):
            if not isinstance(outcome, int):
                released[plan.question] = self._repeat(outcome, plan)
        return released

    def _plan(self, ask: Asked) -> Plan:
        query = Query.of(
            self.contract,
            ask.statistic,
            column=ask.column,
            by=ask.by,
            part=ask.part,
            period=ask.period,
            where=ask.where,
            centred=ask.centred,
            at=ask.at,
            k=ask.k,
        )
        plan = Plan.of(query, version=self.version, spend=ask.spend, asker=self.actor)
        if self._schedule is None:
            return plan
        # As it stands now: other sessions draw from it as well.
        named = ask.spend.cost is not None or ask.spend.error is not None
        return applied(plan, self._store.schedule(self._schedule.name), named=named)

    def _planned(self, ask: Asked, before: Sequence[Plan] = ()) -> Plan:
        """The plan, with what the account would hold afterwards, and after others `before` it in one list."""
        plan = self._plan(ask)
        remaining = self._remaining(plan.query, before)
        stored = None if ask.fresh else self._stored(plan, ask)
        if stored is None:
            left = (
                None
                if plan.selection is None
                else self._delta_remaining(plan.query, before) - plan.delta_units * DELTA_UNIT
            )
            # What a schedule draws was set aside before.
            taken = plan.cost.value if self._schedule is None else Fraction(0)
            also = self._also(plan, before)
            return replace(plan, remaining=remaining - taken, delta_remaining=left, also=also)
        mechanism = mechanism_in(stored)
        return replace(
            plan,
            mechanism=mechanism,
            half_width=plan.half_width_of(mechanism),
            selection=_selection(plan, stored),
            cost=Cost(0),
            remaining=remaining,
            repeat=True,
        )

    def _stored(self, plan: Plan, ask: Asked) -> Stored | None:
        """The sharpest stored answer that serves, or None."""
        answers = [stored for stored in self._store.answers(plan.question) if stored.replaced is None]
        served = [stored for stored in answers if self._serves(plan, ask, stored)]
        return min(served, key=lambda stored: stored.mechanism.scale, default=None)

    def _check_sharper(self, plan: Plan) -> None:
        """Tells what is stored where it is less sharp than asked, or no longer stands; the ledger refuses too, should a
        race come first.
        """
        every = [stored for stored in self._store.answers(plan.question) if stored.reserve.private == self._private]
        answers = [stored for stored in every if stored.replaced is None]
        if every and not answers:
            from parco.stores.requests import superseded_error

            raise superseded_error(every[-1])
        if answers:
            best = min(answers, key=lambda stored: stored.mechanism.scale)
            width = decimal_text(plan.half_width_of(mechanism_in(best)))
            known = _selection(plan, best)
            keys = "" if known is None else f", with keys from {decimal_text(known.threshold)} units on"
            measure = self.contract.budget.measure
            sharpen = "" if known is not None else self._sharpening(plan, best)
            raise SharperError(
                f"an answer to this question ({plan.query}) is stored, less sharp than asked: within {width} instead "
                f"of {decimal_text(plan.half_width)}{keys}. Take it for nothing by naming neither cost nor error,"
                f"{sharpen} or pay {plan.cost} of {measure} for another with --fresh (in Python: fresh=True)",
                stored=width,
                cost=str(plan.cost),
                release=best.request,
            )

    def _sharpening(self, plan: Plan, best: Stored) -> str:
        """How the sharpest stored answer is made as sharp as asked, where it can be."""
        reached = mechanism_in(best)
        if not isinstance(plan.mechanism, Additive) or best.stopped is not None:
            return ""
        more = plan.cost.units - reached.cost_units(plan.sensitivity, self.contract.budget.measure)
        number = best.request
        return (
            f" sharpen it for about {Cost(max(0, more))} by `parco refine` {number} (in Python: refine({number}, …)),"
        )

    def _serves(self, plan: Plan, ask: Asked, stored: Settled) -> bool:
        """Whether a stored answer is at least as sharp as asked; one who names neither cost nor error takes any.

        A function of ledger and question alone. Of selected keys who names a delta asks for a threshold, too.
        """
        mechanism = mechanism_in(stored)
        if stored.reserve.private != self._private or mechanism.kind != plan.mechanism.kind:
            return False
        known, wanted = _selection(plan, stored), None if ask.spend.delta is None else plan.selection
        if known is not None and wanted is not None and known.threshold > wanted.threshold:
            return False
        if ask.spend.cost is None and ask.spend.error is None:
            return True
        reached = ask.spend.error is not None and plan.half_width_of(mechanism) <= ask.spend.error
        if plan.refines is not None and ask.spend.cost is not None:
            # Scales that cost the same to the last unit are alike: nothing is refined for nothing.
            measure = self.contract.budget.measure
            reached = mechanism.cost_units(plan.sensitivity, measure) >= plan.mechanism.cost_units(
                plan.sensitivity, measure
            )
        return mechanism.scale <= plan.mechanism.scale or reached

    def _engine(self, queries: Sequence[Query]) -> DuckDBEngine:
        """The engine on the data's file, once its names and types are found to fit."""
        from parco.engines.duckdb import DuckDBEngine

        source = self._data if self._data is not None else self.contract.source_path
        if source is None:
            raise RequestError("name the data: --data, data=, or source in the contract's [data]")
        engine = DuckDBEngine(source)
        engine.check(self.contract, list(dict.fromkeys(name for query in queries for name in query.names)))
        return engine

    def _begin(self, asked: Sequence[tuple[Plan, Asked]]) -> list[int | Stored]:
        """For each question its request, the charges of all durable in one commit, or a stored answer.

        Waits while another answers one of them.
        """
        from parco.stores.records import Pending, Started

        requests = [self._request(plan, ask) for plan, ask in asked]
        serves = [partial(self._serves, plan, ask) for plan, ask in asked]
        points.reach("before-reserve")
        until = time.monotonic() + _WAIT_SECONDS_MAX
        while isinstance(outcomes := self._store.begin_all(requests, serves=serves), Pending):
            if time.monotonic() > until:
                raise BusyError("another process has been answering the same question for an hour: see `parco history`")
            self._progress("waiting for the same question", 0, 0)
            time.sleep(_POLL_SECONDS)
        return [outcome.request if isinstance(outcome, Started) else outcome for outcome in outcomes]

    def _request(self, plan: Plan, ask: Asked) -> Request:
        from parco.stores.records import Request

        return Request(
            actor=self.actor,
            question=plan.question,
            contract=self._signed.contract,
            mechanism=MechanismFacts(plan.mechanism.kind, plan.mechanism.scale, plan.mechanism.lattice),
            sensitivity=SensitivityFacts(plan.sensitivity.l1, plan.sensitivity.l2_squared),
            cells=plan.query.published,
            charges=self._charges(plan),
            fresh=ask.fresh,
            private=self._private,
            key=ask.key,
            schedule=None if self._schedule is None else self._schedule.position,
            parent=None if plan.refines is None else plan.refines.request,
        )

    def _run(self, started: Sequence[tuple[Plan, int]], engine: DuckDBEngine) -> list[Release[Answer]]:
        """Reads, draws and settles; whatever fails in between forfeits all, told with one constant message."""
        requests = [request for _, request in started]

        def answers() -> list[bytes]:
            points.reach("after-reserve")
            found = self._answers([plan for plan, _ in started], engine)
            points.reach("before-settle")
            return found

        settled = dict(zip(requests, self._or_forfeit(answers, requests), strict=True))
        stored = self._end(lambda: self._store.settle_all(settled), requests)
        points.reach("after-settle")
        return [self._release(one, plan, repeat=False) for one, (plan, _) in zip(stored, started, strict=True)]

    def _or_forfeit(self, act: Callable[[], E], requests: Sequence[int], *, told: str = _FAILED) -> E:
        """Does what touches the data; whatever fails forfeits the requests, told with one constant message."""
        failure: type[BaseException] | None = None
        try:
            return act()
        except BaseException as error:  # noqa: BLE001 - its text may hold a private value; it goes no further
            failure = type(error)
        # Outside the handler, so that the engine's error is not the context of ours and no log can print it.
        self._end(lambda: self._store.forfeit_all(requests), requests)
        raise failure if issubclass(failure, KeyboardInterrupt | SystemExit) else ForfeitedError(told)

    def _end(self, act: Callable[[], E], requests: Sequence[int]) -> E:
        """Ends requests; where the machine refuses, lets go of them, and whoever comes next forfeits them."""
        try:
            return act()
        except BaseException:
            for request in requests:
                self._store.abandon(request)
            raise

    def _answers(self, plans: Sequence[Plan], engine: DuckDBEngine) -> list[bytes]:
        """The noisy cells as they will be stored: exact sums on the finer lattice, plus one exact draw each."""
        self._progress("reading", 0, 0)
        secret = self._store.secret(self._signed.account)
        found = engine.run_all([plan.query for plan in plans], secret=secret)
        return [self._answer(plan, sums) for plan, sums in zip(plans, found, strict=True)]

    def _answer(self, plan: Plan, found: Found) -> bytes:
        if plan.selection is not None:
            return canonical.encode({**self._selected(plan, plan.selection, found), "parco": version("parco")})
        if plan.refines is not None:
            from parco.engines.duckdb import sums

            return refined_answer(plan, plan.refines, sums(found), self._bits())
        match plan.mechanism:
            case Additive():
                noisy = self._noisy(plan, plan.mechanism, found)
            case Exponential() if plan.query.k is not None:
                noisy = self._ranked(plan.query.k, plan.mechanism, found)
            case Exponential():
                noisy = self._chosen(plan, plan.mechanism, found)
            case _:
                raise AssertionError("a mechanism that no question asks for")
        return canonical.encode({"cells": noisy, "parco": version("parco")})

    def _noisy(self, plan: Plan, mechanism: Additive, found: Found) -> list[int]:
        from parco.engines.duckdb import sums

        finer, exact = int(plan.query.step / mechanism.lattice), sums(found)
        return mechanism.draw(
            [steps * finer for steps in exact],
            self._bits(),
            progress=lambda done: self._progress("drawing", done, len(exact)),
        )

    def _selected(self, plan: Plan, selection: Selection, found: Found) -> dict[str, object]:
        """Keys and noisy numbers of units from the threshold on. Sorted before noise is drawn: no order of the data's.

        How many keys there are is private, so that no progress is told.
        """
        from parco.engines.duckdb import keyed

        units = keyed(found)
        # The ledger stores texts in Unicode form NFC: one that this Python sees in another form, as it knows other
        # characters than the engine, would be published as some other key.
        keys = sorted(key for key in units if isinstance(key, int) or unicodedata.is_normalized("NFC", key))
        finer = int(plan.query.step / selection.noise.lattice)
        noisy = selection.noise.draw([units[key] * finer for key in keys], self._bits())
        kept = [(key, steps) for key, steps in zip(keys, noisy, strict=True) if selection.kept(steps)]
        return {"cells": [steps for _, steps in kept], "keys": [key for key, _ in kept]}

    def _ranked(self, k: int, mechanism: Exponential, found: Found) -> list[int]:
        """The places of k keys, in the order in which they are chosen by their exact counts."""
        from parco.engines.duckdb import sums

        return mechanism.choose_several(sums(found), k, self._bits())

    def _chosen(self, plan: Plan, mechanism: Exponential, found: Found) -> list[int]:
        """One candidate a group, in lattice steps; the same path whatever the group holds, and where it is empty."""
        from parco.engines.duckdb import tallies

        bits, candidates, share = self._bits(), plan.query.candidates, plan.query.at or Fraction(0)
        places = []
        for tally in tallies(found):
            places.append(mechanism.choose(runs(tally, at=share, candidates=candidates), bits))
            self._progress("drawing", len(places), plan.query.published)
        return [candidates[place] for place in places]

    def _repeat(self, stored: Stored, plan: Plan) -> Release[Answer]:
        self._store.repeated(stored.request)
        return self._release(stored, plan, repeat=True)

    def _release(self, stored: Stored, plan: Plan, *, repeat: bool) -> Release[Answer]:
        """What the ledger stores, as the asker sees it: a function of the stored bytes and the level asked for."""
        body, mechanism = canonical.decode(stored.answer), mechanism_in(stored)
        selection = _selection(plan, stored)
        answer = Answer(
            by=() if plan.query.of_units else plan.query.by,
            labels=tuple(plan.query.labels()),
            values=tuple(body["cells"]),
            lattice=mechanism.lattice,
            half_width=plan.half_width_of(mechanism),
            confidence=plan.confidence,
            half_widths=_half_widths(plan, mechanism, () if stored.stopped is None else stored.stopped.scales),
        )
        if plan.query.k is not None:
            answer = top_answer(answer)
        if selection is not None:
            answer = keys_answer(answer, plan.query, keys=body["keys"], threshold=selection.threshold)
        receipt = self._receipt(stored, plan)
        cost, remaining = (Cost(0), self._remaining(plan.query)) if repeat else (receipt.cost, receipt.remaining)
        return Release(answer, receipt, repeat, cost, remaining)

    def _receipt(self, stored: Stored, plan: Plan) -> Receipt:
        return receipt_of(
            self._store,
            stored,
            question=str(plan.query),
            limits=plan.query.limits,
            version=self.version,
            labels={number: label for label, number in self._signed.accounts.items()},
        )

    def _charged(self, query: Query) -> list[int]:
        """The accounts that pay for a question, rising."""
        return sorted(self._signed.accounts[label] for label in query.accounts)

    def _charges(self, plan: Plan) -> tuple[Charge, ...]:
        """What each account pays, rising: those of the question, and all that the data set descends from."""
        costs = dict.fromkeys(self._charged(plan.query), plan.cost.units)
        costs |= {number: _cost_in(plan, measure) for number, measure in self._signed.ancestors.items()}
        return tuple(Charge(number, cost, plan.delta_units) for number, cost in sorted(costs.items()))

    def _also(self, plan: Plan, before: Sequence[Plan]) -> tuple[Also, ...]:
        """What the accounts pay that the data set descends from, once plans `before` are charged."""
        if not self._signed.ancestors:
            return ()
        rows, found = {row.account: row for row in self._store.accounts()}, []
        for number, measure in self._signed.ancestors.items():
            cost, row = _cost_in(plan, measure), rows[number]
            taken = cost + sum(_cost_in(other, measure) for other in before)
            deltas = plan.delta_units + sum(other.delta_units for other in before)
            left = (row.remaining - taken) * COST_UNIT, (row.delta_remaining - deltas) * DELTA_UNIT
            found.append(Also(row.title, measure, Cost(cost), *left))
        return tuple(found)

    def _remaining(self, query: Query, before: Sequence[Plan] = ()) -> Fraction:
        """What is left on the account, or on the one of several that has least, once plans `before` are charged."""
        charged, taken = self._charged(query), Counter[int]()
        for plan in before if self._schedule is None else ():
            taken.update(dict.fromkeys(self._charged(plan.query), plan.cost.units))
        rows = (row for row in self._store.accounts() if row.account in charged)
        return min(row.remaining - taken[row.account] for row in rows) * COST_UNIT

    def _delta_remaining(self, query: Query, before: Sequence[Plan] = ()) -> Fraction:
        """The same of the delta for mechanisms."""
        charged, taken = self._charged(query), Counter[int]()
        for plan in before:
            taken.update(dict.fromkeys(self._charged(plan.query), plan.delta_units))
        rows = (row for row in self._store.accounts() if row.account in charged)
        return min(row.delta_remaining - taken[row.account] for row in rows) * DELTA_UNIT

    # The two members below are all that `parco.testing` replaces.
    _private = True

    def _bits(self) -> BitSource:
        """Bits under a new key from the kernel, a new source for each release."""
        return CipherBits()


class Planner(Questions[Plan, MeanPlan, VariancePlan, QuantilePlan, BoundsPlan]):
    """The questions of a session, answered with their plans: cost, half-width, what would be left."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def _ask(self, ask: Asked) -> Plan:
        return self._session._planned(ask)

    def refine(
        self,
        release: Release[Any] | int,
        *,
        error: Exactable | None = None,
        cost: Exactable | None = None,
        confidence: Exactable | None = None,
    ) -> Plan:
        """What it would cost to make an answer sharper."""
        spend = Spend.of(cost=cost, error=error, confidence=confidence)
        return Refiner(self._session, release).planned(spend)

    def release(self, asks: Sequence[Ask]) -> list[Plan | JointPlans]:
        """What each of several questions would cost, and leave after those before it; what is asked twice is charged
        once.
        """
        found, new = [], dict[str, Plan]()
        for ask in asks:
            parts = self._session._parts(ask)
            own = {self._session._plan(part).question for part in parts}
            before = [plan for question, plan in new.items() if question not in own]
            plans = [self._session._planned(part, before) for part in parts]
            for plan in plans:
                old = new.get(plan.question, plan)
                new[plan.question] = max(old, plan, key=lambda one: (one.cost.units, one.delta_units))
            found.append(_whole_plan(ask, plans))
        return found

    def _mean(self, ask: Asked, split: Exactable | None) -> MeanPlan:
        return MeanPlan(*self._planned(mean_parts(ask, split)))

    def _variance(self, ask: Asked) -> VariancePlan:
        return VariancePlan(*self._planned(variance_parts(ask)))

    def _quantile(self, ask: Asked, at: Shares) -> QuantilePlan:
        return QuantilePlan(tuple(self._planned(quantile_parts(ask, at))))

    def _bounds(self, ask: Asked, cover: Fraction) -> BoundsPlan:
        return BoundsPlan(tuple(self._planned(bounds_parts(ask, cover))))

    def _planned(self, parts: list[Asked]) -> list[Plan]:
        return [self._session._planned(part) for part in parts]


def default_ledger(contract: Contract) -> Path:
    """`<name>.ledger` in the folder of the contract's file, after the data set, whose contracts share one budget.

    Raises RequestError for a name that is no file name.
    """
    name = contract.data.name
    if name.startswith(".") or {"/", "\\", "\x00", ":"} & set(name):
        raise RequestError(f"the data set's name {name!r} makes no file name: name the ledger with --ledger")
    return contract.folder / f"{name}.ledger"


def _whole_plan(ask: Ask, plans: list[Plan]) -> Plan | JointPlans:
    match ask.statistic:
        case "mean":
            return MeanPlan(*plans)
        case "variance":
            return VariancePlan(*plans)
        case "quantile":
            return QuantilePlan(tuple(plans))
        case "suggest_bounds":
            return BoundsPlan(tuple(plans))
    return plans[0]


def _selection(plan: Plan, stored: Settled) -> Selection | None:
    """The selection that a stored answer was made by: its noise and its delta hold the threshold."""
    return plan.selection_of(mechanism_in(stored), units=max(charge.delta for charge in stored.charges))


def _cost_in(plan: Plan, measure: Measure) -> int:
    """What a release costs in another measure, in 10^-15, rounded up: by the facts of its noise.

    What refines an answer costs what its law costs there beyond the law of that answer.
    """
    if plan.repeat:
        return 0
    paid = 0 if plan.refines is None else plan.refines.mechanism.cost_units(plan.sensitivity, measure)
    return plan.mechanism.cost_units(plan.sensitivity, measure) - paid


def _serving_all(asked: Sequence[tuple[Plan, Asked]]) -> tuple[Plan, Asked]:
    """Of asks of one question the sharpest, which serves them all; QuestionError where none does.

    Of selected keys one answer has both the least noise and the lowest threshold, or it is not as sharp as asked.
    """

    def threshold(plan: Plan) -> Fraction:
        return Fraction(0) if plan.selection is None else plan.selection.threshold

    best = min(asked, key=lambda one: (one[0].mechanism.scale, threshold(one[0])))
    if any(threshold(plan) < threshold(best[0]) for plan, _ in asked):
        raise QuestionError(
            f"{best[0].query} is asked twice in one list, once with less noise and once with a lower threshold, so "
            "that no one answer serves both: ask it once, at the larger cost (or smaller error) and the larger delta"
        )
    return best


def _at_level(release: Release[Answer], plan: Plan) -> Release[Answer]:
    """The release with intervals at the level this plan asks for."""
    if release.value.confidence == plan.confidence:
        return release
    mechanism, scales = release.receipt.mechanism, release.receipt.scales
    width, each = plan.half_width_of(mechanism), _half_widths(plan, mechanism, scales)
    return release.map(lambda answer: replace(answer, half_width=width, half_widths=each, confidence=plan.confidence))


def _half_widths(plan: Plan, mechanism: Mechanism, scales: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Of each cell of an answer whose cells stopped apart, by their scales; none for any other."""
    found = {scale: plan.half_width_of(type(mechanism)(scale, mechanism.lattice)) for scale in set(scales)}
    return tuple(found[scale] for scale in scales)


def _no_progress(stage: str, done: int, total: int) -> None:
    """For callers that want no progress shown."""
