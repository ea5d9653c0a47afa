package apply

import (
	"context"
	"errors"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server-side apply merges desired fields with fields of other clients. Fields that exclude each other (value and valueFrom, two
// sources of a volume, two handlers of a probe, a strategy and the parameters of another) make the merged object invalid on
// each retry. Changes of immutable fields, such as roleRef, are rejected too. repair resolves both, once per rejected apply.

// repair removes the cause of a rejected apply from a managed object, and reports whether the apply is to be sent again.
func (a *Applier) repair(ctx context.Context, o owner, c *child, rejection error) (bool, error) {
	live, err := a.getLive(ctx, c.key)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if !a.hasMarker(o, live) || a.checkForeign(o, c, live) != nil || live.GetDeletionTimestamp() != nil {
		return false, nil
	}
	desired, err := a.render(o, c)
	if err != nil {
		return false, err
	}
	if hasImmutableConflict(desired, live) {
		if c.NeverDelete || c.Ownership == Unowned && c.key.Group == "" {
			return false, nil // the data may have no copy
		}
		c.exists, c.uid = false, "" // it is created again
		return true, a.deleteByUID(ctx, o.uid, c.key, live.GetUID(), background)
	}
	repaired := live.DeepCopy()
	if !replaceInvalidFields(repaired, desired, rejection) {
		return false, nil
	}
	c.uid, err = live.GetUID(), a.patch(ctx, verbPatch, c.key, live, repaired)
	if apierrors.IsInvalid(err) {
		return false, nil // the rejection has another cause
	}
	return true, err
}

// hasImmutableConflict reports whether a field that is immutable in RBAC, Secrets or ConfigMaps differs from the desired one.
func hasImmutableConflict(desired, live *unstructured.Unstructured) bool {
	differs := func(field string) bool {
		value, found := desired.Object[field]
		return found && !reflect.DeepEqual(value, live.Object[field])
	}
	return differs("roleRef") || differs("type") || live.Object["immutable"] == true && desired.Object["immutable"] != true
}

// replaceInvalidFields replaces the fields directly below the spec in which a rejection found invalid fields, such as the whole pod template,
// with the desired ones, and reports whether there are any.
func replaceInvalidFields(live, desired *unstructured.Unstructured, rejection error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](rejection)
	if !ok || status.ErrStatus.Details == nil {
		return false
	}
	replaced := false
	for _, cause := range status.ErrStatus.Details.Causes {
		path := strings.FieldsFunc(cause.Field, func(r rune) bool { return r == '.' || r == '[' })
		if len(path) < 2 || path[0] != "spec" {
			continue
		}
		value := lookup(desired.Object, path[:2]...)
		if spec, ok := live.Object["spec"].(map[string]any); ok && value != nil {
			spec[path[1]], replaced = value, true
		}
	}
	return replaced
}
