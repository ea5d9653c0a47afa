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

// Server-side apply merges desired fields with fields of other clients. Fields that exclude each other (value and valueFrom, two
// sources of a volume, two handlers of a probe, a strategy and the parameters of another) make the merged object invalid on
// each retry. Changes of immutable fields, such as roleRef, are rejected too. repair resolves both, once per rejected apply.

// repair removes the cause of a rejected apply from a managed object, and returns the apply to retry now; nil for none.
func (a *Applier) repair(ctx context.Context, o owner, c child, rejection error) (*applyRequest, error) {
	live, err := a.getLive(ctx, c.key)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !a.hasMarker(o, live) || a.checkForeign(o, c, live) != nil || live.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	desired, err := c.render(a.Component, o, nil)
	if err != nil {
		return nil, err
	}
	if hasImmutableConflict(desired, live) {
		if c.NeverDelete || c.Ownership == Unowned && c.key.Group == "" {
			return nil, nil // the data may have no copy
		}
		return &applyRequest{create: true}, a.deleteByUID(ctx, o, c.key, live.GetUID(), metav1.DeletePropagationBackground)
	}
	patch := buildConflictPatch(desired.Object, live.Object, invalidParents(rejection))
	if len(patch) == 0 {
		return nil, nil
	}
	err = a.patch(ctx, verbPatch, c.key, live, append(patch, versionPrecondition(live)))
	if apierrors.IsInvalid(err) {
		return nil, nil // the rejection has another cause
	}
	return &applyRequest{uid: live.GetUID()}, err
}

// hasImmutableConflict reports whether an immutable field differs from the desired one.
func hasImmutableConflict(desired, live *unstructured.Unstructured) bool {
	differs := func(field string) bool {
		value, found := desired.Object[field]
		return found && !reflect.DeepEqual(value, live.Object[field])
	}
	switch kind := desired.GroupVersionKind().GroupKind(); {
	case kind.Group == rbacv1.GroupName:
		return differs("roleRef")
	case kind.Group != "" || kind.Kind != "Secret" && kind.Kind != "ConfigMap":
		return false
	}
	return live.Object["immutable"] == true && desired.Object["immutable"] != true || differs("type")
}

// invalidParents returns the structs with invalid fields as paths without list indexes, such as "spec.template.spec.containers.env".
func invalidParents(rejection error) sets.Set[string] {
	paths := sets.New[string]()
	status, ok := errors.AsType[*apierrors.StatusError](rejection)
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

// buildConflictPatch returns a JSON patch that makes the structs at paths equal to the desired ones: it removes undesired fields and
// adds the desired values. Structs that have all desired values are unchanged.
func buildConflictPatch(desired, live map[string]any, paths sets.Set[string]) []operation {
	p := conflictPatch{paths: paths}
	p.addFields("", "", desired, live)
	return p.operations
}

// conflictPatch collects the operations of buildConflictPatch.
type conflictPatch struct {
	paths      sets.Set[string]
	operations []operation
}

// addFields walks a struct. path is its path in conflictPatch.paths, pointer its JSON pointer.
func (p *conflictPatch) addFields(path, pointer string, desired, live map[string]any) {
	if p.paths.Has(path) {
		p.addStruct(pointer, desired, live)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		childPath, childPointer := strings.TrimPrefix(path+"."+name, "."), pointer+"/"+jsonPointerEscaper.Replace(name)
		switch field := desired[name].(type) {
		case map[string]any:
			if liveField, ok := live[name].(map[string]any); ok {
				p.addFields(childPath, childPointer, field, liveField)
			}
		case []any:
			liveField, _ := live[name].([]any)
			p.addItems(childPath, childPointer, field, liveField)
		}
	}
}

// addItems walks the items of two lists, matched by name.
func (p *conflictPatch) addItems(path, pointer string, desired, live []any) {
	for _, item := range desired {
		fields, ok := item.(map[string]any)
		if !ok || fields["name"] == nil {
			continue
		}
		i := slices.IndexFunc(live, func(other any) bool { return lookup(other, "name") == fields["name"] })
		if i < 0 {
			continue
		}
		if liveFields, ok := live[i].(map[string]any); ok {
			p.addFields(path, fmt.Sprintf("%s/%d", pointer, i), fields, liveFields)
		}
	}
}

// addStruct adds the operations that make a live struct equal to the desired one. Existing lists and maps are left to the next apply.
func (p *conflictPatch) addStruct(pointer string, desired, live map[string]any) {
	var operations []operation
	differs := false
	for _, name := range slices.Sorted(maps.Keys(live)) {
		if _, found := desired[name]; !found {
			operations = append(operations, operation{Operation: "remove", Path: pointer + "/" + jsonPointerEscaper.Replace(name)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		liveField, found := live[name]
		_, isMap := liveField.(map[string]any)
		_, isList := liveField.([]any)
		if found && (isMap || isList || equal(desired[name], liveField)) {
			continue
		}
		differs = true
		operations = append(operations, operation{Operation: "add", Path: pointer + "/" + jsonPointerEscaper.Replace(name), Value: desired[name]})
	}
	if differs {
		p.operations = append(p.operations, operations...)
	}
}
