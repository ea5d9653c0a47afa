package capability

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// evaluate turns an answer into a set. A kind that was served and is not listed any more stays in it while discovery
// cannot tell, and, within the window, while its definition still exists; the latter is reported as held.
//
// The kinds of a version that is announced and was never described count as served: its server is away, as that of an aggregated
// API may be when the manager starts. Whoever took them for absent would build other children, and remove those that there are;
// whoever takes them for served gets an error from the API server at the worst, and tries again.
func (w *Watcher) evaluate(answer served) (next Set, held bool) {
	before := w.Current()
	var kinds []schema.GroupVersionKind
	expired := !w.settleUntil.IsZero() && !w.options.Clock.Now().Before(w.settleUntil)
	for _, k := range w.options.Kinds {
		plural, ok := answer.plural(k)
		_, failed := answer.failed[k.GroupVersion()]
		unknown := !w.known[k.GroupVersion()]
		switch {
		case ok:
			w.plurals[k] = plural
			kinds = append(kinds, k)
		case failed && (unknown || before.Has(k)):
			kinds = append(kinds, k)
		case unknown || !before.Has(k):
		case !expired && w.announced(k):
			held = true
			kinds = append(kinds, k)
		}
	}
	return NewSet(kinds...), held
}

// learn notes which versions an answer tells about; one that it does not list is told to be absent.
func (w *Watcher) learn(answer served) {
	for _, k := range w.options.Kinds {
		if _, failed := answer.failed[k.GroupVersion()]; !failed {
			w.known[k.GroupVersion()] = true
		}
	}
}

// announced reports whether what makes a kind served still exists: its definition, or, for a kind that never had one,
// its APIService.
func (w *Watcher) announced(k schema.GroupVersionKind) bool {
	definition := w.plurals[k] + "." + k.Group
	defined := false
	for _, f := range w.feeds {
		if !f.following() {
			continue
		}
		switch f.resource {
		case definitions:
			defined = w.seen[f][definition]
			if f.has(definition) {
				return true
			}
		case apiServices:
			if !defined && f.has(k.Version+"."+k.Group) {
				return true
			}
		}
	}
	return false
}

// agrees reports whether discovery lists what the feeds know and nothing that they saw going.
func (w *Watcher) agrees(answer served) bool {
	agreed := true
	for _, f := range w.feeds {
		if !f.following() {
			continue
		}
		names := f.names(w.groups)
		for name := range names {
			listed, uncertain := f.listed(answer, name)
			agreed = agreed && (listed || uncertain)
		}
		for name := range w.seen[f] {
			if listed, _ := f.listed(answer, name); listed && !names[name] {
				agreed = false
				names[name] = true // still to be watched going
			}
		}
		w.seen[f] = names
	}
	return agreed
}

// forgetGone ends the wait for names that discovery lists although their objects are gone.
func (w *Watcher) forgetGone() {
	for _, f := range w.feeds {
		w.seen[f] = f.names(w.groups)
	}
}
