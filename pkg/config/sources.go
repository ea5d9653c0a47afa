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
	flags  map[string]string // by name, as given
	lookup func(string) (string, bool)
	file   map[string]string // by dotted key
	path   string            // of the file, for messages
}

// env returns a variable; empty counts as unset.
func (s sources) env(name string) string {
	v, _ := s.lookup(name)
	return strings.TrimSpace(v)
}

// resolve takes a setting from the highest source that has it.
func (s sources) resolve(row setting) value {
	if raw, ok := s.flags[row.flag]; ok {
		return value{from: "flag --" + row.flag, raw: raw}
	}
	for _, name := range row.env {
		if raw := s.env(name); raw != "" {
			return value{from: "environment variable " + name, raw: raw}
		}
	}
	if raw, ok := s.file[row.key]; ok {
		return value{from: s.path + ": " + row.key, raw: raw}
	}
	return value{from: "default", raw: row.fallback}
}

// parseArgs returns the values of flags by their names; a mistake is answered with what would have been right.
func parseArgs(args []string, table []setting, components []string) (map[string]string, error) {
	out := map[string]string{}
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	isBool := flagNames(table, components)
	define := func(name, target string) {
		set := func(raw string) error { out[target] = raw; return nil }
		if isBool[target] {
			flags.BoolFunc(name, "", set)
		} else {
			flags.Func(name, "", set)
		}
	}
	for name := range isBool {
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
			return nil, unknownFlag(name, isBool, components)
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

// OlderFlags returns the names of flags in the originals that are accepted, with those that they have here.
func OlderFlags() map[string]string { return maps.Clone(olderFlags) }

// flagNames maps every flag to whether it is boolean.
func flagNames(table []setting, components []string) map[string]bool {
	names := map[string]bool{"components": false}
	for _, row := range table {
		if row.flag != "" {
			names[row.flag] = row.isBool
		}
	}
	for _, name := range components {
		names["enable-"+name] = true
	}
	return names
}

func unknownFlag(name string, known map[string]bool, components []string) error {
	if component, ok := strings.CutPrefix(name, "enable-"); ok {
		return fmt.Errorf("flag --%s: %w", name, unknownComponent(component, components))
	}
	names := sortedKeys(known)
	hint := ""
	if near := nearest(name, names); near != "" {
		hint = fmt.Sprintf(" (did you mean --%s?)", near)
	}
	return fmt.Errorf("unknown flag --%s%s; known flags: --%s", name, hint, strings.Join(names, ", --"))
}

// nearest returns the name with the fewest edits away, or "" when none is close.
func nearest(name string, candidates []string) string {
	best, distance := "", max(2, len(name)/4)+1
	for _, candidate := range candidates {
		if d := names.Edits(name, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
