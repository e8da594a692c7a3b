"""The evaluation harness: cases, measures and reports. Holds no tuned part and tunes nothing."""
