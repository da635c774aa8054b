"""Whether what a ledger says is so: checks that anybody can run, on a ledger at hand or on what left it.

Here: the named checks of a whole ledger (`verify`), releases and their receipts (`releases`), and three files that
check an exported ledger and share no code with the rest (`offline`, `offline_life`, `offline_prices`). Not here:
spending, and what a ledger does when a check fails (`stores`). Start with `verify.verify`.
"""
