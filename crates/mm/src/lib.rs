//! Linux's page reclaim as a deterministic state machine.
