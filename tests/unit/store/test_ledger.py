from strop.store.jsonl import Log
from strop.store.ledger import Entry, Event, Ledger, audit, read_ledger


def entry(group, event, *, samples=(), reason=""):
    return Entry(step=0, group=group, prompt=f"p{group}", event=event, reason=reason, samples=list(samples))


def test_entries_come_back_as_written(tmp_path):
    ledger = Ledger(Log(tmp_path / "ledger.jsonl"))
    written = [entry(0, Event.ISSUED, samples=[0, 1]), entry(0, Event.DROPPED, reason="equal rewards")]
    for one in written:
        ledger.record(one)
    assert read_ledger(tmp_path / "ledger.jsonl") == written


def test_issued_is_trained_plus_dropped_plus_pending():
    balance = audit(
        [
            entry(0, Event.ISSUED),
            entry(1, Event.ISSUED),
            entry(2, Event.ISSUED),
            entry(0, Event.FINISHED),
            entry(0, Event.TRAINED, samples=[0, 1]),
            entry(1, Event.DROPPED, reason="equal rewards"),
        ]
    )
    assert (balance.issued, balance.trained, balance.dropped, balance.pending) == (3, 1, 1, 1)
    assert balance.reasons == {"equal rewards": 1}
    assert balance.is_balanced


def test_a_group_trained_twice_is_a_fault():
    balance = audit([entry(0, Event.ISSUED), entry(0, Event.TRAINED), entry(0, Event.TRAINED)])
    assert balance.faults == ["group 0 (prompt p0, step 0): trained after it was trained"]
    assert not balance.is_balanced


def test_a_group_that_was_never_issued_is_a_fault():
    assert audit([entry(3, Event.TRAINED)]).faults == [
        "group 3 (prompt p3, step 0): trained but never issued"
    ]


def test_a_group_issued_twice_is_a_fault():
    assert audit([entry(3, Event.ISSUED), entry(3, Event.ISSUED)]).faults == [
        "group 3 (prompt p3, step 0): issued twice"
    ]


def test_a_sample_trained_in_two_groups_is_a_fault():
    balance = audit(
        [
            entry(0, Event.ISSUED),
            entry(1, Event.ISSUED),
            entry(0, Event.TRAINED, samples=[5]),
            entry(1, Event.TRAINED, samples=[5, 6]),
        ]
    )
    assert balance.faults == ["sample 5 (group 1): trained twice"]
