"""Conformance: small cases with exact schedules, for every simulator that claims to do what gridsched does.

`cases` reads them, `answers` compares the answers of a simulator with the stored schedules, `running` lets
gridsched itself run them, and `exporting` writes them for others. What each case pins down is said in
`resources/conformance/README.md`.
"""
