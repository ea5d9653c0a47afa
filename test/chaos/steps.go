package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// step is one action of a random round.
type step struct {
	// Do is create, change, delete, deleteChild, changeAppWrapper, fault, closeWatches, kill, terminate or wait.
	Do string `json:"do"`
	// On is the name of the subject or of the fault.
	On string `json:"on,omitempty"`
	// Pick seeds the choices of the step, so a shorter sequence makes the same choices.
	Pick uint64 `json:"pick,omitempty"`
}

func (s step) String() string { return strings.TrimSpace(fmt.Sprintf("%s %s", s.Do, s.On)) }

func describe(steps []step) string {
	texts := make([]string, 0, len(steps))
	for _, s := range steps {
		texts = append(texts, s.String())
	}
	return strings.Join(texts, ", ")
}

// weights are the relative frequencies of the kinds of steps.
var weights = []struct {
	do    string
	share int
}{{"create", 6}, {"change", 3}, {"delete", 3}, {"deleteChild", 4}, {"changeAppWrapper", 4}, {"fault", 4}, {"closeWatches", 1}, {"kill", 2}, {"terminate", 1}, {"wait", 2}}

// sequence returns random steps.
func sequence(random *rand.Rand, count int, names, faults []string) []step {
	sum := 0
	for _, w := range weights {
		sum += w.share
	}
	var all []step
	for range count {
		at := random.IntN(sum)
		i := slices.IndexFunc(weights, func(w struct {
			do    string
			share int
		}) bool {
			at -= w.share
			return at < 0
		})
		s := step{Do: weights[i].do, Pick: random.Uint64()}
		switch s.Do {
		case "create", "change", "delete", "deleteChild":
			s.On = names[random.IntN(len(names))]
		case "fault":
			s.On = faults[random.IntN(len(faults))]
		}
		all = append(all, s)
	}
	return all
}

// shrink returns the shortest failing sequence that it finds within a number of tries by removing halves, quarters, and so on (delta
// debugging).
func shrink(steps []step, tries int, fails func([]step) bool) []step {
	for size := (len(steps) + 1) / 2; size > 0; {
		shorter := false
		for from := 0; from < len(steps) && tries > 0; {
			rest := slices.Concat(steps[:from], steps[min(len(steps), from+size):])
			tries--
			if len(rest) > 0 && fails(rest) {
				steps, shorter = rest, true
				continue
			}
			from += size
		}
		if tries <= 0 {
			return steps
		}
		if !shorter || size > len(steps) {
			size /= 2
		}
	}
	return steps
}
