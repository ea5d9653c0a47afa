package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const stateFile = "state.json"

// state is the content of the state file of an instance: enough for any program to list, use and stop it.
type state struct {
	Name      string     `json:"name"`
	Platform  Platform   `json:"platform"`
	Owner     *Process   `json:"owner,omitempty"` // the program with which the instance ends; during the start, the program that starts it
	Ports     []int      `json:"ports"`
	Real      bool       `json:"real,omitempty"` // pods run on a real node, whose network all processes use
	Memory    string     `json:"memory,omitempty"`
	Processes []*Process `json:"processes"`
}

func readState(dir string) (state, error) {
	content, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err != nil {
		return state{}, fmt.Errorf("reading the state of instance %s: %w", filepath.Base(dir), err)
	}
	var s state
	if err := json.Unmarshal(content, &s); err != nil {
		return state{}, fmt.Errorf("decoding the state of instance %s: %w", filepath.Base(dir), err)
	}
	return s, nil
}

func (s state) write(dir string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state of instance %s: %w", s.Name, err)
	}
	return writeFile(filepath.Join(dir, stateFile), append(content, '\n'))
}

// record adds a process, or replaces a process with the same name.
func (s *state) record(p *Process) {
	s.Processes = slices.DeleteFunc(s.Processes, func(other *Process) bool { return other.Name == p.Name })
	s.Processes = append(s.Processes, p)
}

func (s *state) process(name string) *Process {
	for _, p := range s.Processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// allStates returns the states of all instances below dir. For a folder of an interrupted start, which has no readable state, the state
// has only the name, which suffices for its removal.
func allStates(dir string) ([]state, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing instances: %w", err)
	}
	var states []state
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		s, err := readState(filepath.Join(dir, entry.Name()))
		if err != nil {
			s = state{Name: entry.Name()}
		}
		states = append(states, s)
	}
	return states, nil
}

func reservedPorts(states []state) []int {
	var ports []int
	for _, s := range states {
		ports = append(ports, s.Ports...)
	}
	return ports
}
