package framework

import "time"

// fixedClock always returns the same time.
type fixedClock struct{}

func (fixedClock) Now() time.Time { return time.Unix(0, 0) }

func (fixedClock) Since(time.Time) time.Duration { return 0 }
