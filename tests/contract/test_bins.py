"""Bins as a contract declares them: their names, what is refused, and that each says what it is in the text."""

from __future__ import annotations

import pytest

from parco.contract.contract import Contract
from parco.contract.fields import CELLS_MAX
from parco.errors import ContractError

from .document import changed, parse

MONTH = 'column = "day"\nevery = "month"\nfirst = "2024-01"\nlast = "2024-06"\n'


def bins(lines: str) -> Contract:
    return parse((MONTH, f"{lines}\n"))


def fault(lines: str) -> str:
    with pytest.raises(ContractError) as caught:
        Contract.parse(changed((MONTH, f"{lines}\n")))
    found = caught.value.facts["faults"]
    assert isinstance(found, list)
    assert len(found) == 1
    return str(found[0])


def calendar(every: str, first: str, last: str, more: str = "") -> str:
    return f'column = "day"\nevery = "{every}"\nfirst = {first}\nlast = {last}\n{more}'


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        (calendar("day", '"2024-02-28"', '"2024-03-01"'), ("2024-02-28", "2024-02-29", "2024-03-01")),
        (calendar("day", "2023-02-28", "2023-03-01"), ("2023-02-28", "2023-03-01")),
        (calendar("week", '"2020-W52"', '"2021-W01"'), ("2020-W52", "2020-W53", "2021-W01")),
        (calendar("week", '"0001-W01"', '"0001-W02"'), ("0001-W01", "0001-W02")),
        (calendar("week", '"9999-W52"', '"9999-W52"'), ("9999-W52",)),
        (calendar("month", '"2023-12"', '"2024-01"'), ("2023-12", "2024-01")),
        (calendar("quarter", '"2023-Q4"', '"2024-Q2"'), ("2023-Q4", "2024-Q1", "2024-Q2")),
        (calendar("year", '"1999"', '"2001"'), ("1999", "2000", "2001")),
        (calendar("year", "1999", "2001"), ("1999", "2000", "2001")),
        (calendar("year", '"0001"', '"0001"', 'time_zone = "Europe/Berlin"'), ("0001",)),
        ('column = "cost"\nedges = ["0", "10", "100"]', ("[0, 10)", "[10, 100)")),
        ('column = "cost"\nedges = [-1, 0.5, "1e3"]\nbelow = true', ("< -1", "[-1, 0.5)", "[0.5, 1000)")),
        ('column = "age"\nedges = [18, 65]\nbelow = true\nabove = true', ("< 18", "[18, 65)", ">= 65")),
        ('column = "cost"\nedges = [0]\nbelow = true\nabove = true', ("< 0", ">= 0")),
        ('column = "cost"\nedges = [0]\nabove = true', (">= 0",)),
        ('column = "age"\nfirst = 0\nlast = 29\nwidth = 10', ("0 to 9", "10 to 19", "20 to 29")),
        ('column = "age"\nfirst = -2\nlast = -1\nwidth = 1', ("-2", "-1")),
    ],
)
def test_names_of_bins(lines: str, keys: tuple[str, ...]) -> None:
    contract = bins(lines)
    assert contract.keys("month") == keys
    assert Contract.from_text(contract.text).keys("month") == keys


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        (calendar("day", '"2023-02-29"', '"2023-03-01"'), "bins.month.first", '"1997-01-31"'),
        (calendar("day", '"20230228"', '"2023-03-01"'), "bins.month.first", '"1997-01-31"'),
        (calendar("day", '"2023-02-28"', '"2023-W09-1"'), "bins.month.last", '"1997-01-31"'),
        (calendar("week", '"2021-W53"', '"2022-W01"'), "bins.month.first", '"1997-W05"'),
        (calendar("week", '"2021-W00"', '"2022-W01"'), "bins.month.first", '"1997-W05"'),
        (calendar("week", '"2021-01"', '"2022-W01"'), "bins.month.first", '"1997-W05"'),
        (calendar("week", '"0000-W01"', '"2022-W01"'), "bins.month.first", '"1997-W05"'),
        (calendar("quarter", '"2021-Q0"', '"2022-Q1"'), "bins.month.first", '"1997-Q1"'),
        (calendar("quarter", '"2021-Q5"', '"2022-Q1"'), "bins.month.first", '"1997-Q1"'),
        (calendar("year", '"0000"', '"2022"'), "bins.month.first", '"1997"'),
        (calendar("year", '"99"', '"2022"'), "bins.month.first", '"1997"'),
        (calendar("year", '"２０２２"', '"2022"'), "bins.month.first", '"1997"'),
        (calendar("day", '"0001-01-01"', '"9999-12-31"'), "bins.month", "bins are more than"),
        (calendar("week", '"2024-W02"', '"2024-W01"'), "bins.month", "last is before first"),
        (calendar("month", '"2024-01"', '"2024-02"', 'time_zone = "Berlin"'), "bins.month.time_zone", "IANA"),
        (calendar("month", '"2024-01"', '"2024-02"', 'time_zone = "localtime"'), "bins.month.time_zone", "IANA"),
        (calendar("month", '"2024-01"', '"2024-02"', 'time_zone = "+02:00"'), "bins.month.time_zone", "IANA"),
        (calendar("month", '"2024-01"', '"2024-02"', 'time_zone = "../UTC"'), "bins.month.time_zone", "IANA"),
        (calendar("month", '"2024-01"', '"2024-02"', "above = true"), "bins.month.above", "unknown key"),
        (calendar("month", '"2024-01"', '"2024-02"').replace("day", "cost"), "bins.month", "type date"),
        ('column = "day"\nedges = [0, 1]', "bins.month", "type integer or decimal"),
        ('column = "ward"\nedges = [0, 1]', "bins.month", "type integer or decimal"),
        ('column = "cost"\nfirst = 0\nlast = 9\nwidth = 5', "bins.month", "type integer"),
        ('column = "cost"\nedges = []', "bins.month", "at least two edges"),
        ('column = "cost"\nedges = [1]', "bins.month", "at least two edges"),
        ('column = "cost"\nedges = [1, 1]', "bins.month", "edges must rise"),
        ('column = "cost"\nedges = [2, 1]', "bins.month", "edges must rise"),
        ('column = "cost"\nedges = ["1/3", 1]', "bins.month", "at most 12 places"),
        ('column = "cost"\nedges = [0, "1e-13"]', "bins.month", "at most 12 places"),
        ('column = "cost"\nedges = [0, "1e19"]', "bins.month", "at most 10^18"),
        ('column = "cost"\nedges = [0, nan]', "bins.month.edges.1", ""),
        ('column = "cost"\nedges = [0, inf]', "bins.month.edges.1", ""),
        ('column = "cost"\nedges = [0, true]', "bins.month.edges.1", ""),
        ('column = "cost"\nedges = "0, 1"', "bins.month.edges", "give a list"),
        (f'column = "cost"\nedges = {list(range(1001))}', "bins.month", "at most 1000 edges"),
        ('column = "cost"\nedges = [0, 1]\nbelow = 1', "bins.month.below", "give true or false"),
        ('column = "cost"\nedges = [0, 1]\nabove = "true"', "bins.month.above", "give true or false"),
        ('column = "cost"\nedges = [0, 1]\nwidth = 1', "bins.month.width", "unknown key"),
        ('column = "age"\nfirst = 0\nlast = 8\nwidth = 5', "bins.month", "multiple of width"),
        ('column = "age"\nfirst = 1\nlast = 0\nwidth = 1', "bins.month", "last is before first"),
        ('column = "age"\nfirst = 0\nlast = 9\nwidth = 0', "bins.month.width", "greater than or equal to 1"),
        ('column = "age"\nfirst = "0"\nlast = 9\nwidth = 1', "bins.month.first", "give a whole number"),
        ('column = "age"\nfirst = 0\nlast = 9.0\nwidth = 1', "bins.month.last", "give a whole number"),
        (f'column = "age"\nfirst = 0\nlast = {10**18 + 1}\nwidth = 1', "bins.month.last", "less than or equal"),
        (f'column = "age"\nfirst = 1\nlast = {CELLS_MAX + 1}\nwidth = 1', "bins.month", "bins are more than"),
    ],
)
def test_bins_that_make_no_sense_are_refused(lines: str, place: str, words: str) -> None:
    found = fault(lines)
    assert found.startswith(f"{place}: ")
    assert words in found


def test_the_most_bins_there_may_be() -> None:
    assert len(bins(f'column = "age"\nfirst = 1\nlast = {CELLS_MAX}\nwidth = 1').keys("month") or ()) == CELLS_MAX


def test_writing_that_there_is_no_open_bin_changes_nothing() -> None:
    one = bins('column = "cost"\nedges = [0, 1]')
    assert bins('column = "cost"\nedges = ["0", "1.0"]\nbelow = false\nabove = false').text == one.text
    assert bins('column = "cost"\nedges = [0, 1]\nbelow = true').text != one.text
