package access

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/event"

	mlflowv1 "github.com/odh-platform/odh-platform-operator/apis/mlflow/v1"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	"github.com/odh-platform/odh-platform-operator/pkg/objectmeta"
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

func namespaceWith(labels map[string]string) *metav1.PartialObjectMetadata {
	namespace := objectmeta.New(namespaceKind)
	namespace.Name, namespace.Labels = "team", labels
	return namespace
}

// [mlflow-70] [mlflow-71]
func TestDecide(t *testing.T) {
	labelled := namespaceWith(map[string]string{WorkspaceLabel: "mlflow"})
	terminatingNamespace := namespaceWith(labelled.Labels)
	terminatingNamespace.DeletionTimestamp = new(metav1.Now())
	terminatingMLflow := owner()
	terminatingMLflow.DeletionTimestamp = new(metav1.Now())
	known := auth{State: authKnown}
	for name, tc := range map[string]struct {
		namespace *metav1.PartialObjectMetadata
		mlflow    *mlflowv1.MLflow
		auth      auth
		want      decision
	}{
		"Auth and MLflow exist":             {labelled, owner(), known, decideApply},
		"no namespace":                      {nil, nil, known, decideDelete},
		"no label":                          {namespaceWith(nil), owner(), known, decideDelete},
		"empty label":                       {namespaceWith(map[string]string{WorkspaceLabel: ""}), owner(), known, decideDelete},
		"no MLflow":                         {labelled, nil, known, decideDelete},
		"MLflow is being deleted":           {labelled, terminatingMLflow, known, decideDelete},
		"no Auth":                           {labelled, owner(), auth{State: authMissing}, decideDelete},
		"Auth API not served":               {labelled, owner(), auth{State: authNotServed}, decideDelete},
		"Auth not read yet":                 {labelled, owner(), auth{}, decideRequeue},
		"invalid Auth":                      {labelled, owner(), auth{State: authInvalid}, decideNothing},
		"namespace is terminating":          {terminatingNamespace, owner(), known, decideNothing},
		"namespace is terminating, no Auth": {terminatingNamespace, owner(), auth{State: authMissing}, decideNothing},
		"no MLflow, Auth unknown":           {labelled, nil, auth{}, decideDelete},
	} {
		if got := decide(tc.namespace, tc.mlflow, tc.auth); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// [mlflow-73] A missing list is empty. A value of another type is an error with the field and the fix.
func TestReadAuth(t *testing.T) {
	object := func(spec any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	}
	for name, tc := range map[string]struct {
		object         *unstructured.Unstructured
		state          authState
		allowed, admin string
		problem        []string
	}{
		"no Auth":        {nil, authMissing, "", "", nil},
		"both lists":     {object(map[string]any{"allowedGroups": []any{"a", "b"}, "adminGroups": []any{"c"}}), authKnown, "a b", "c", nil},
		"no lists":       {object(map[string]any{}), authKnown, "", "", nil},
		"no spec":        {&unstructured.Unstructured{Object: map[string]any{}}, authKnown, "", "", nil},
		"empty names":    {object(map[string]any{"allowedGroups": []any{"", "b"}, "adminGroups": []any{""}}), authKnown, "b", "", nil},
		"not a list":     {object(map[string]any{"allowedGroups": "a", "adminGroups": []any{"c"}}), authInvalid, "", "", []string{"spec.allowedGroups of Auth auth"}},
		"numbers":        {object(map[string]any{"allowedGroups": []any{"a"}, "adminGroups": []any{int64(1)}}), authInvalid, "", "", []string{"spec.adminGroups of Auth auth", "list each group as a string"}},
		"both invalid":   {object(map[string]any{"allowedGroups": true, "adminGroups": map[string]any{}}), authInvalid, "", "", []string{"spec.allowedGroups", "spec.adminGroups"}},
		"spec is a list": {object([]any{}), authInvalid, "", "", []string{"spec.allowedGroups"}},
		"null groups":    {object(map[string]any{"allowedGroups": nil, "adminGroups": []any{"c"}}), authKnown, "", "c", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := readAuth(tc.object)
			if got.State != tc.state || strings.Join(got.Groups.Allowed, " ") != tc.allowed || strings.Join(got.Groups.Admin, " ") != tc.admin {
				t.Errorf("got %+v, want state %v with the groups %q and %q", got, tc.state, tc.allowed, tc.admin)
			}
			for _, part := range tc.problem {
				if !strings.Contains(got.Problem, part) {
					t.Errorf("%q lacks %q", got.Problem, part)
				}
			}
		})
	}
}

// [mlflow-76]
func TestHasWorkspaceLabel(t *testing.T) {
	with, without := namespaceWith(map[string]string{WorkspaceLabel: "mlflow"}), namespaceWith(map[string]string{"other": "label"})
	empty := namespaceWith(map[string]string{WorkspaceLabel: ""})
	p := hasWorkspaceLabel()
	for name, tc := range map[string]struct{ got, want bool }{
		"create, labelled":             {p.Create(event.CreateEvent{Object: with}), true},
		"create, unlabelled":           {p.Create(event.CreateEvent{Object: without}), false},
		"create, empty value":          {p.Create(event.CreateEvent{Object: empty}), true},
		"delete, labelled":             {p.Delete(event.DeleteEvent{Object: with}), true},
		"delete, unlabelled":           {p.Delete(event.DeleteEvent{Object: without}), false},
		"generic, labelled":            {p.Generic(event.GenericEvent{Object: with}), true},
		"generic, unlabelled":          {p.Generic(event.GenericEvent{Object: without}), false},
		"update, label added":          {p.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: with}), true},
		"update, label removed":        {p.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: without}), true},
		"update with unchanged labels": {p.Update(event.UpdateEvent{ObjectOld: with, ObjectNew: with}), true},
		"update, unlabelled":           {p.Update(event.UpdateEvent{ObjectOld: without, ObjectNew: without}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: got %t, want %t", name, tc.got, tc.want)
		}
	}
}

// The creation or deletion of an MLflow enqueues namespaces. A change of its spec or status does not [D33].
func TestExistenceChanged(t *testing.T) {
	changed, terminating := owner(), owner()
	changed.Generation, changed.Status.URL = 9, "https://x"
	terminating.DeletionTimestamp = new(metav1.Now())
	p := servers.ExistenceChanged()
	if p.Update(event.UpdateEvent{ObjectOld: owner(), ObjectNew: changed}) || p.Update(event.UpdateEvent{ObjectOld: terminating, ObjectNew: terminating}) {
		t.Error("the predicate accepted an irrelevant update")
	}
	if !p.Update(event.UpdateEvent{ObjectOld: owner(), ObjectNew: terminating}) || !p.Create(event.CreateEvent{Object: owner()}) || !p.Delete(event.DeleteEvent{Object: owner()}) {
		t.Error("the predicate ignored the creation or deletion of an MLflow")
	}
}

func roleBindingError(err error) error {
	return &apply.Error{Kind: "RoleBinding", Namespace: "team", Name: ViewBinding, Err: err}
}

// An error that the deletion of an object causes is ignored, unless the deletion has timed out or another error is joined.
func TestIgnoreTransient(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, ViewBinding, errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, ViewBinding, errors.New("bind"))
	deleting, stuck := &apply.TerminatingError{Kind: "RoleBinding"}, &apply.TerminatingError{Kind: "RoleBinding", TimedOut: true}
	foreign := &apply.ForeignError{Kind: "RoleBinding"}
	for name, tc := range map[string]struct {
		err     error
		ignored bool
	}{
		"no error":                             {nil, true},
		"namespace is terminating":             {roleBindingError(terminating), true},
		"both bindings":                        {errors.Join(roleBindingError(terminating), roleBindingError(terminating)), true},
		"RoleBinding is terminating":           {errors.Join(roleBindingError(deleting)), true},
		"deletion of the RoleBinding is stuck": {roleBindingError(stuck), false},
		"forbidden":                            {roleBindingError(forbidden), false},
		"joined with another failure":          {errors.Join(roleBindingError(terminating), roleBindingError(forbidden)), false},
		"foreign RoleBindings":                 {errors.Join(roleBindingError(foreign), roleBindingError(foreign)), false},
		"foreign RoleBinding and a failure":    {errors.Join(roleBindingError(foreign), roleBindingError(forbidden)), false},
		"wrapped":                              {fmt.Errorf("binding: %w", roleBindingError(terminating)), true},
	} {
		if got := ignoreTransient(tc.err); (got == nil) != tc.ignored {
			t.Errorf("%s: ignoreTransient returned %v", name, got)
		}
	}
}

// The condition reports the state of Auth, or else the failed namespaces with the error of the first by name. It is omitted until Auth is
// read.
func TestReportState(t *testing.T) {
	observed := auth{}
	r := &Report{auth: func() auth { return observed }, failures: map[string]string{}}
	notifications := 0
	r.listeners.Subscribe(t.Context(), func(struct{}) { notifications++ })
	expect := func(status metav1.ConditionStatus, reason string, parts ...string) {
		t.Helper()
		gotStatus, gotReason, message := r.State()
		if gotStatus != status || gotReason != reason {
			t.Errorf("got %s %s, want %s %s", gotStatus, gotReason, status, reason)
		}
		for _, part := range parts {
			if !strings.Contains(message, part) {
				t.Errorf("%q lacks %q", message, part)
			}
		}
	}
	wasNotified := func() bool {
		defer func() { notifications = 0 }()
		return notifications > 0
	}
	expect("", "")
	observed = auth{State: authNotServed}
	expect("False", "AuthAPIMissing", "auths.services.platform.opendatahub.io", "ENABLE_NAMESPACE_RBAC=false")
	observed = auth{State: authMissing}
	expect("False", "AuthMissing", "no Auth auth")
	observed = auth{State: authInvalid, Problem: "spec.adminGroups is invalid"}
	expect("False", "AuthInvalid", "stays as it was", "spec.adminGroups is invalid")
	observed = auth{State: authKnown}
	expect("True", "RoleBindingsReady", WorkspaceLabel)

	r.record("team-b", errors.New("no right to bind"))
	if !wasNotified() {
		t.Error("a new error triggered no reconcile of MLflow")
	}
	r.record("team-b", errors.New("no right to bind"))
	if wasNotified() {
		t.Error("a repeated error triggered another reconcile of MLflow")
	}
	r.record("team-a", errors.New("name conflict"))
	r.record("team-c", errors.New("name conflict"))
	expect("False", "RoleBindingsFailed", "in 3 namespace(s)", "the first is team-a: name conflict")
	r.record("team-a", nil)
	r.record("team-c", nil)
	expect("False", "RoleBindingsFailed", "in 1 namespace(s)", "team-b: no right to bind")
	if !wasNotified() {
		t.Error("the end of an error triggered no reconcile of MLflow")
	}
	r.record("team-b", nil)
	expect("True", "RoleBindingsReady")
	wasNotified()
	if r.record("team-d", nil); wasNotified() {
		t.Error("a success without an earlier error triggered a reconcile of MLflow")
	}
}
