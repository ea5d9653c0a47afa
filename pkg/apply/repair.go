package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server-side apply puts our fields beside those owned by others. Where theirs exclude ours (value and valueFrom of a variable, two
// sources of a volume, two handlers of a probe, a strategy with the parameters of another), the API server calls the result
// invalid, for ever. Fields that cannot be changed at all, such as the role of a binding, are refused in the same way. Both are
// mended here, once for each refusal.

// repair mends an object of ours whose apply the API server has called invalid, and returns the change that is worth trying now.
// Nil says that there is none.
func (a *Applier) repair(ctx context.Context, o owner, c child, refusal error) (*change, error) {
	live, err := a.live(ctx, c.key)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !a.marked(o, live) || a.claim(o, c, live) != nil || live.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	want, err := c.render(a.Component, o, nil)
	if err != nil {
		return nil, err
	}
	if frozen(want, live) {
		if c.NeverDelete || c.Ownership == Unowned && c.key.Group == "" {
			return nil, nil // data that may be nowhere else
		}
		return &change{creates: true}, a.delete(ctx, o, c.key, live.GetUID(), metav1.DeletePropagationBackground)
	}
	patch := exclusions(want.Object, live.Object, causes(refusal))
	if len(patch) == 0 {
		return nil, nil
	}
	err = a.patch(ctx, verbPatch, c.key, live, append(patch, atVersion(live)))
	if apierrors.IsInvalid(err) {
		return nil, nil // the refusal has another cause
	}
	return &change{uid: live.GetUID()}, err
}

// frozen says whether an object differs from what is wanted in something that no update can change.
func frozen(want, live *unstructured.Unstructured) bool {
	differs := func(field string) bool {
		wanted, named := want.Object[field]
		return named && !reflect.DeepEqual(wanted, live.Object[field])
	}
	switch kind := want.GroupVersionKind().GroupKind(); {
	case kind.Group == rbacv1.GroupName:
		return differs("roleRef")
	case kind.Group != "" || kind.Kind != "Secret" && kind.Kind != "ConfigMap":
		return false
	}
	return live.Object["immutable"] == true && want.Object["immutable"] != true || differs("type")
}

// causes returns the structs in which the API server found what it does not like, as paths without the places in lists, such as
// "spec.template.spec.containers.env".
func causes(refusal error) sets.Set[string] {
	paths := sets.New[string]()
	status, ok := errors.AsType[*apierrors.StatusError](refusal)
	if !ok || status.ErrStatus.Details == nil {
		return paths
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		path := listIndex.ReplaceAllString(cause.Field, "")
		if i := strings.LastIndex(path, "."); i > 0 {
			paths.Insert(path[:i])
		}
	}
	return paths
}

var listIndex = regexp.MustCompile(`\[[^\]]*\]`)

// exclusions returns the steps of one JSON patch that makes the named structs of a live object what they should be: fields that are
// not wanted go, in favour of those that are. Structs in which nothing of ours is missing are left alone.
func exclusions(want, live map[string]any, at sets.Set[string]) []operation {
	w := exclusion{at: at}
	w.fields("", "", want, live)
	return w.steps
}

type exclusion struct {
	at    sets.Set[string]
	steps []operation
}

// fields compares a struct as it is wanted with the live one; path is that of the causes, place the JSON pointer.
func (e *exclusion) fields(path, place string, want, live map[string]any) {
	if e.at.Has(path) {
		e.settle(place, want, live)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		below, spot := strings.TrimPrefix(path+"."+name, "."), place+"/"+pointer.Replace(name)
		switch wanted := want[name].(type) {
		case map[string]any:
			if there, ok := live[name].(map[string]any); ok {
				e.fields(below, spot, wanted, there)
			}
		case []any:
			there, _ := live[name].([]any)
			e.items(below, spot, wanted, there)
		}
	}
}

// items pairs the elements of lists by their names.
func (e *exclusion) items(path, place string, want, live []any) {
	for _, item := range want {
		wanted, ok := item.(map[string]any)
		if !ok || wanted["name"] == nil {
			continue
		}
		i := slices.IndexFunc(live, func(other any) bool { return entry(other, "name") == wanted["name"] })
		if i < 0 {
			continue
		}
		if there, ok := live[i].(map[string]any); ok {
			e.fields(path, fmt.Sprintf("%s/%d", place, i), wanted, there)
		}
	}
}

// settle turns a live struct into the wanted one. Fields of ours that hold more than one value, and are there, are left to the
// apply that follows.
func (e *exclusion) settle(place string, want, live map[string]any) {
	var steps []operation
	differs := false
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if _, wanted := want[name]; !wanted {
			steps = append(steps, operation{Operation: "remove", Path: place + "/" + pointer.Replace(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		there, ok := live[name]
		_, isMap := there.(map[string]any)
		_, isList := there.([]any)
		if ok && (isMap || isList || equal(want[name], there)) {
			continue
		}
		differs = true
		steps = append(steps, operation{Operation: "add", Path: place + "/" + pointer.Replace(name), Value: want[name]})
	}
	if differs {
		e.steps = append(e.steps, steps...)
	}
}
