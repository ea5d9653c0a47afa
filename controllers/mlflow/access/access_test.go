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
	"github.com/odh-platform/odh-platform-operator/pkg/servers"
)

func namespaced(labels map[string]string) *metav1.PartialObjectMetadata {
	head := namespaceMetadata()
	head.Name, head.Labels = "team", labels
	return head
}

// [mlflow-70] [mlflow-71] What a namespace calls for.
func TestDecide(t *testing.T) {
	opted := namespaced(map[string]string{WorkspaceLabel: "mlflow"})
	ending := namespaced(opted.Labels)
	ending.DeletionTimestamp = new(metav1.Now())
	terminating := owner()
	terminating.DeletionTimestamp = new(metav1.Now())
	known := auth{State: authKnown}
	for name, tc := range map[string]struct {
		namespace *metav1.PartialObjectMetadata
		mlflow    *mlflowv1.MLflow
		auth      auth
		want      decision
	}{
		"Auth and MLflow exist":    {opted, owner(), known, decideApply},
		"no namespace":             {nil, nil, known, decideDelete},
		"no label":                 {namespaced(nil), owner(), known, decideDelete},
		"empty label":              {namespaced(map[string]string{WorkspaceLabel: ""}), owner(), known, decideDelete},
		"no MLflow":                {opted, nil, known, decideDelete},
		"MLflow is being deleted":  {opted, terminating, known, decideDelete},
		"no Auth":                  {opted, owner(), auth{State: authMissing}, decideDelete},
		"no API of Auth":           {opted, owner(), auth{State: authNotServed}, decideDelete},
		"Auth not read yet":        {opted, owner(), auth{}, decideRequeue},
		"Auth not fit":             {opted, owner(), auth{State: authInvalid}, decideNothing},
		"terminating":              {ending, owner(), known, decideNothing},
		"terminating without Auth": {ending, owner(), auth{State: authMissing}, decideNothing},
		"no MLflow, Auth unknown":  {opted, nil, auth{}, decideDelete},
	} {
		if got := decide(tc.namespace, tc.mlflow, tc.auth); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// [mlflow-73] The groups of an Auth; absent lists are empty, and lists of another type are errors that name field and fix.
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
		"none":        {nil, authMissing, "", "", nil},
		"both":        {object(map[string]any{"allowedGroups": []any{"a", "b"}, "adminGroups": []any{"c"}}), authKnown, "a b", "c", nil},
		"absent":      {object(map[string]any{}), authKnown, "", "", nil},
		"no spec":     {&unstructured.Unstructured{Object: map[string]any{}}, authKnown, "", "", nil},
		"blank names": {object(map[string]any{"allowedGroups": []any{"", "b"}, "adminGroups": []any{""}}), authKnown, "b", "", nil},
		"a string":    {object(map[string]any{"allowedGroups": "a", "adminGroups": []any{"c"}}), authInvalid, "", "", []string{"spec.allowedGroups of Auth auth"}},
		"numbers":     {object(map[string]any{"allowedGroups": []any{"a"}, "adminGroups": []any{int64(1)}}), authInvalid, "", "", []string{"spec.adminGroups of Auth auth", "list each group as a string"}},
		"both wrong":  {object(map[string]any{"allowedGroups": true, "adminGroups": map[string]any{}}), authInvalid, "", "", []string{"spec.allowedGroups", "spec.adminGroups"}},
		"spec a list": {object([]any{}), authInvalid, "", "", []string{"spec.allowedGroups"}},
		"null groups": {object(map[string]any{"allowedGroups": nil, "adminGroups": []any{"c"}}), authKnown, "", "c", nil},
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

// [mlflow-76] Which events of namespaces count.
func TestHasWorkspaceLabel(t *testing.T) {
	with, without := namespaced(map[string]string{WorkspaceLabel: "mlflow"}), namespaced(map[string]string{"other": "label"})
	empty := namespaced(map[string]string{WorkspaceLabel: ""})
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

// A status write of an MLflow, or a change of its spec, reaches no namespace [D33]; its deletion does.
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

func wrapped(err error) error {
	return &apply.Error{Kind: "RoleBinding", Namespace: "team", Name: ViewBinding, Err: err}
}

// Errors that pass without a change are not failures, also together with failures.
func TestIgnoreTransient(t *testing.T) {
	terminating := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, ViewBinding, errors.New("terminating"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, ViewBinding, errors.New("bind"))
	deleting, stuck := &apply.TerminatingError{Kind: "RoleBinding"}, &apply.TerminatingError{Kind: "RoleBinding", TimedOut: true}
	foreign := &apply.ForeignError{Kind: "RoleBinding"}
	for name, tc := range map[string]struct {
		err     error
		passing bool
	}{
		"no error":                             {nil, true},
		"namespace ends":                       {wrapped(terminating), true},
		"both bindings":                        {errors.Join(wrapped(terminating), wrapped(terminating)), true},
		"RoleBinding is terminating":           {errors.Join(wrapped(deleting)), true},
		"deletion of the RoleBinding is stuck": {wrapped(stuck), false},
		"not allowed":                          {wrapped(forbidden), false},
		"joined with another failure":          {errors.Join(wrapped(terminating), wrapped(forbidden)), false},
		"foreign RoleBindings":                 {errors.Join(wrapped(foreign), wrapped(foreign)), false},
		"foreign RoleBinding and a failure":    {errors.Join(wrapped(foreign), wrapped(forbidden)), false},
		"deep":                                 {fmt.Errorf("binding: %w", wrapped(terminating)), true},
	} {
		if got := ignoreTransient(tc.err); (got == nil) != tc.passing {
			t.Errorf("%s: ignoreTransient returned %v", name, got)
		}
	}
}

// The condition reports the state of Auth first, then the first of the namespaces that failed; what is not known is not reported.
func TestReportState(t *testing.T) {
	a := auth{}
	r := &Report{auth: func() auth { return a }, failures: map[string]string{}}
	notifications := 0
	r.listeners.Subscribe(t.Context(), func(struct{}) { notifications++ })
	expect := func(status metav1.ConditionStatus, reason string, parts ...string) {
		t.Helper()
		gotStatus, gotReason, message := r.State()
		if gotStatus != status || gotReason != reason {
			t.Errorf("%s got %s, want %s %s", gotStatus, gotReason, status, reason)
		}
		for _, part := range parts {
			if !strings.Contains(message, part) {
				t.Errorf("%q lacks %q", message, part)
			}
		}
	}
	isNotified := func() bool {
		defer func() { notifications = 0 }()
		return notifications > 0
	}
	expect("", "")
	a = auth{State: authNotServed}
	expect("False", "AuthAPIMissing", "auths.services.platform.opendatahub.io", "ENABLE_NAMESPACE_RBAC=false")
	a = auth{State: authMissing}
	expect("False", "AuthMissing", "no Auth auth")
	a = auth{State: authInvalid, Problem: "spec.adminGroups is odd"}
	expect("False", "AuthInvalid", "stays as it was", "spec.adminGroups is odd")
	a = auth{State: authKnown}
	expect("True", "RoleBindingsReady", WorkspaceLabel)

	r.record("team-b", errors.New("no right to bind"))
	if !isNotified() {
		t.Error("a new error triggered no reconcile of MLflow")
	}
	r.record("team-b", errors.New("no right to bind"))
	if isNotified() {
		t.Error("a repeated error triggered another reconcile of MLflow")
	}
	r.record("team-a", errors.New("taken"))
	r.record("team-c", errors.New("taken"))
	expect("False", "RoleBindingsFailed", "in 3 namespace(s)", "the first is team-a: taken")
	r.record("team-a", nil)
	r.record("team-c", nil)
	expect("False", "RoleBindingsFailed", "in 1 namespace(s)", "team-b: no right to bind")
	if !isNotified() {
		t.Error("the end of an error triggered no reconcile of MLflow")
	}
	r.record("team-b", nil)
	expect("True", "RoleBindingsReady")
	isNotified()
	if r.record("team-d", nil); isNotified() {
		t.Error("a success without an earlier error triggered a reconcile of MLflow")
	}
}
