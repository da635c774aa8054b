"""Accuracy first: ask for an accuracy, and spend only what it needs.

`ladders.py` says which costs are tried, `rules.py` when it is enough, `loop.py` climbs; `noises.py` and `bands.py` give
intervals that hold at the stop. `cells.py` refines each cell by itself. `validation.py` and `run.py` stop on a private
validation set. All see released values only, except `memory.py`, which holds private numbers to stand in for a session.
"""
