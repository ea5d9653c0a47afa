package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"
)

const (
	// remembered is the number of previous measurements with which a new one is compared.
	remembered = 30
	// tolerated is how much greater than the median of the previous ones a ratio may be.
	tolerated = 1.2
)

// measurement is a line of the history: ratios to a bare client or to a limit, of which smaller ones are better.
type measurement struct {
	Time   time.Time          `json:"time"`
	Ratios map[string]float64 `json:"ratios"`
}

var errWorse = errors.New("ratios are more than a fifth above the median of former ones")

// readHistory returns the measurements in a file of JSON lines; none if it does not exist.
func readHistory(path string) ([]measurement, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history: %w", err)
	}
	var all []measurement
	for line := range bytes.Lines(text) {
		var m measurement
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, len(all)+1, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// remember adds a measurement to a file, and returns errWorse with those ratios that are worse than previous ones. The file keeps them too, so
// that what is accepted becomes the measure.
func remember(path string, now measurement) error {
	former, err := readHistory(path)
	if err != nil {
		return err
	}
	former = former[max(0, len(former)-remembered):]
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, m := range append(slices.Clone(former), now) {
		if err := encoder.Encode(m); err != nil {
			return fmt.Errorf("encoding the history: %w", err)
		}
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	if worse := now.worse(former); len(worse) > 0 {
		return fmt.Errorf("%w: %q", errWorse, worse)
	}
	return nil
}

// worse describes the ratios that are more than a fifth above the median of previous measurements.
func (m measurement) worse(former []measurement) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(m.Ratios)) {
		var before []float64
		for _, f := range former {
			if ratio, measured := f.Ratios[name]; measured {
				before = append(before, ratio)
			}
		}
		if len(before) == 0 {
			continue
		}
		slices.Sort(before)
		middle := (before[(len(before)-1)/2] + before[len(before)/2]) / 2
		if m.Ratios[name] > tolerated*middle {
			found = append(found, fmt.Sprintf("%s: %.2f, median of %d former ones %.2f", name, m.Ratios[name], len(before), middle))
		}
	}
	return found
}
