"""The ledger as mathematics: what an entry is, and what a sequence of entries adds up to.

Here: entries and their one encoding (`entries`), accounts as a pure state machine (`accounts`), the names of the crash
points (`points`). Not here: files, databases, clocks, processes; those are in `stores`. Integers and the standard
library only, so that a stranger can check it. Start with `accounts.replay`.
"""
