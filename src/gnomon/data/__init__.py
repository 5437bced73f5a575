"""Tables: reading, preparing and writing them, and the samples for a first try."""
