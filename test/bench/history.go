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
	// historyLength is the maximum number of previous measurements in the file.
	historyLength = 30
	// maxRatioIncrease is the limit of a ratio, relative to the median of the previous measurements.
	maxRatioIncrease = 1.2
)

// measurement is a line of the history: ratios to a bare client or to a limit; smaller is better.
type measurement struct {
	Time   time.Time          `json:"time"`
	Ratios map[string]float64 `json:"ratios"`
}

var errRegression = errors.New("ratios exceed the median of previous measurements by more than a fifth")

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

// appendMeasurement adds a measurement to a file, and returns errRegression with the ratios that are worse than before. It stores these
// ratios too: an accepted regression moves the median.
func appendMeasurement(path string, now measurement) error {
	previous, err := readHistory(path)
	if err != nil {
		return err
	}
	previous = previous[max(0, len(previous)-historyLength):]
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, m := range append(slices.Clone(previous), now) {
		if err := encoder.Encode(m); err != nil {
			return fmt.Errorf("encoding the history: %w", err)
		}
	}
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	if worse := now.regressions(previous); len(worse) > 0 {
		return fmt.Errorf("%w: %q", errRegression, worse)
	}
	return nil
}

// regressions describes the ratios that exceed the median of previous measurements by more than maxRatioIncrease.
func (m measurement) regressions(previous []measurement) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(m.Ratios)) {
		var before []float64
		for _, f := range previous {
			if ratio, measured := f.Ratios[name]; measured {
				before = append(before, ratio)
			}
		}
		if len(before) == 0 {
			continue
		}
		slices.Sort(before)
		middle := (before[(len(before)-1)/2] + before[len(before)/2]) / 2
		if m.Ratios[name] > maxRatioIncrease*middle {
			found = append(found, fmt.Sprintf("%s: %.2f, median of %d previous measurements %.2f", name, m.Ratios[name], len(before), middle))
		}
	}
	return found
}
