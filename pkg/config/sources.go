package config

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

// ErrHelp is returned by Load when the arguments contain --help or -h.
var ErrHelp = errors.New("help requested")

// sources are the places a value may come from.
type sources struct {
	flags  map[string]value // by name
	lookup func(string) (string, bool)
	file   map[string]value // by dotted key
}

// env returns a variable; empty counts as unset.
func (s sources) env(name string) string {
	if s.lookup == nil {
		return ""
	}
	v, _ := s.lookup(name)
	return strings.TrimSpace(v)
}

// resolve takes a setting from the highest source that has it.
func (s sources) resolve(row setting) value {
	if v, ok := s.flags[row.flag]; ok {
		return v
	}
	for _, name := range row.env {
		if raw := s.env(name); raw != "" {
			return value{from: "environment variable " + name, raw: raw}
		}
	}
	if v, ok := s.file[row.key]; ok {
		return v
	}
	return value{from: "default", raw: row.fallback}
}

// given returns what the sources name of a table, by the keys of the settings. An empty text counts as unset.
func (s sources) given(table []setting) map[string]value {
	found := map[string]value{}
	for _, row := range table {
		row.fallback = ""
		if v := s.resolve(row); v.raw != "" || v.wrong != nil || row.shape == aList && v.from != "default" {
			found[row.key] = v
		}
	}
	return found
}

// parseArgs returns the values of flags by their names; a mistake is answered with what would have been right.
func parseArgs(args []string, table []setting, components []string) (map[string]value, error) {
	out := map[string]value{}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	shapes := flagShapes(table)
	define := func(name, target string) {
		set := func(raw string) error { out[target] = value{from: "flag --" + target, raw: raw}; return nil }
		if shapes[target] == aSwitch {
			flags.BoolFunc(name, "", set) // without a value it means true
		} else {
			flags.Func(name, "", set)
		}
	}
	for name := range shapes {
		define(name, name)
	}
	for older, name := range olderFlags {
		define(older, name)
	}
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil, ErrHelp
	}
	if err != nil {
		if name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); unknown {
			return nil, unknownFlag(name, sortedKeys(shapes), components)
		}
		if name, missing := strings.CutPrefix(err.Error(), "flag needs an argument: -"); missing {
			name = cmp.Or(olderFlags[name], name)
			return nil, fmt.Errorf("flag --%s needs a value: --%s=<value>", name, name)
		}
		return nil, fmt.Errorf("%w: --help lists all flags", err)
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("argument %q is neither a sub-command nor a flag: --help lists both", flags.Arg(0))
	}
	return out, nil
}

// olderFlags are names of flags in the originals, with those that they have here.
var olderFlags = map[string]string{
	"metrics-cert-dir": "metrics-cert-path", "metrics-key-name": "metrics-cert-key",
	"metrics-addr": "metrics-bind-address", "enable-leader-election": "leader-elect",
	"leader-elect-lease-duration-sec":       "leader-elect-lease-duration",
	"leader-elect-lease-renew-deadline-sec": "leader-elect-renew-deadline",
	"leader-elect-retry-period-sec":         "leader-elect-retry-period",
}

// LegacyFlags returns the names of flags in the originals that are accepted, with those that they have here.
func LegacyFlags() map[string]string { return maps.Clone(olderFlags) }

// flagShapes are the shapes of the values of all flags, by their names.
func flagShapes(table []setting) map[string]shape {
	shapes := map[string]shape{}
	for _, row := range table {
		if row.flag != "" {
			shapes[row.flag] = row.shape
		}
	}
	return shapes
}

func unknownFlag(name string, known, components []string) error {
	if component, ok := strings.CutPrefix(name, "enable-"); ok {
		return fmt.Errorf("flag --%s: %w", name, unknownComponent(component, components))
	}
	hint := ""
	if near := nearest(name, known); near != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", near)
	}
	return fmt.Errorf("unknown flag --%s%s; known flags: --%s", name, hint, strings.Join(known, ", --"))
}

// nearest returns the name with the fewest edits away, or "" when none is close.
func nearest(name string, candidates []string) string {
	best, distance := "", max(2, len(name)/4)+1
	for _, candidate := range candidates {
		if d := names.EditDistance(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
