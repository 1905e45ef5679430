//! The mothership's mind: scheduler, planner, workers, bookkeeper.
