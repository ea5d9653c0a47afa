package platform

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	platformv1alpha1 "github.com/odh-platform/odh-platform-operator/apis/platform/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
)

var (
	releaseOfMLflow   = platformv1alpha1.Release{Name: "MLflow", Version: "3.14.0", RepoURL: "https://github.com/mlflow/mlflow"}
	releaseOfPlatform = func(version string) platformv1alpha1.Release {
		return platformv1alpha1.Release{Name: "platform", Version: version}
	}
)

// [mlflow-57] The first reconcile adds the finalizer and sets the status; in the steady state no request is sent.
func TestMLflowOperatorFirstReconcile(t *testing.T) {
	f := newOperatorFixture(t, mlflowOperatorWith(), configMap("2.30.0"))
	f.expectReconcile(2)
	m := f.get()
	if !slices.Equal(m.Finalizers, []string{"mlflow.opendatahub.io/mlflow-operator-protection"}) {
		t.Errorf("got finalizers %v, want that of the MLflowOperator", m.Finalizers)
	}
	want := platformv1alpha1.Status{
		Phase: "Ready", ObservedGeneration: 1, Releases: []platformv1alpha1.Release{releaseOfPlatform("2.30.0"), releaseOfMLflow},
		Distribution: &platformv1alpha1.Distribution{Name: "Open Data Hub", Version: "2.30.0"},
		Conditions: []platformv1alpha1.Condition{{
			Type: "Ready", Status: "True", Reason: "Ready", Message: "MLflowOperator is ready to manage MLflow custom resources",
			ObservedGeneration: 1, LastTransitionTime: minutesAfterStart(0), LastHeartbeatTime: new(minutesAfterStart(0)),
		}},
	}
	if diff := cmp.Diff(want, m.Status.Status); diff != "" {
		t.Errorf("status differs (-want +got):\n%s", diff)
	}
	reads := f.reads
	f.clock.Step(time.Hour)
	f.expectReconcile(0)
	if f.reads != reads {
		t.Errorf("got %d live reads in the steady state, want none", f.reads-reads)
	}
}

// [mlflow-58] [mlflow-59] The message names the missing fields. The domain is optional.
func TestMissingFields(t *testing.T) {
	for name, tc := range map[string]struct {
		spec platformv1alpha1.MLflowOperatorSpec
		want []string
	}{
		"required fields set": {platformv1alpha1.MLflowOperatorSpec{GatewayName: "g", SectionTitle: "s"}, nil},
		"no title":            {platformv1alpha1.MLflowOperatorSpec{GatewayName: "g"}, []string{"spec.sectionTitle"}},
		"no gateway":          {platformv1alpha1.MLflowOperatorSpec{SectionTitle: "s"}, []string{"spec.gatewayName"}},
		"both fields missing": {platformv1alpha1.MLflowOperatorSpec{Gateway: &platformv1alpha1.GatewaySpec{Domain: "d"}}, []string{"spec.gatewayName", "spec.sectionTitle"}},
		"blank gateway":       {platformv1alpha1.MLflowOperatorSpec{GatewayName: " ", SectionTitle: "s"}, []string{"spec.gatewayName"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := missingFields(tc.spec); !slices.Equal(got, tc.want) {
				t.Errorf("missing %v, want %v", got, tc.want)
			}
			f := newOperatorFixture(t, mlflowOperatorWith(func(m *platformv1alpha1.MLflowOperator) { m.Spec = tc.spec }))
			f.expectReconcile(2)
			m := f.get()
			ready := conditionOf(m, "Ready")
			message := "Waiting for MLflowOperator spec fields before managing MLflow custom resources: " + strings.Join(tc.want, ", ")
			switch {
			case len(tc.want) == 0 && (ready.Status != "True" || m.Status.Phase != "Ready"):
				t.Errorf("got phase %s and condition %+v, want Ready and True", m.Status.Phase, ready)
			case len(tc.want) > 0 && (ready.Status != "False" || ready.Reason != "ConfigPending" || ready.Message != message || m.Status.Phase != "Progressing"):
				t.Errorf("got phase %s and condition %+v, want Progressing and False with message %q", m.Status.Phase, ready, message)
			}
		})
	}
}

// [mlflow-60] [mlflow-61] D32: an invalid version of the platform is reported and its release omitted; the phase does not change.
func TestStatusListsReleases(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		want    []platformv1alpha1.Release
		message string // of ConditionVersion, or empty without one
	}{
		"no ConfigMap":  {nil, []platformv1alpha1.Release{releaseOfMLflow}, ""},
		"empty version": {[]client.Object{configMap("")}, []platformv1alpha1.Release{releaseOfMLflow}, ""},
		"version":       {[]client.Object{configMap("2.30.0")}, []platformv1alpha1.Release{releaseOfPlatform("2.30.0"), releaseOfMLflow}, ""},
		"with a v":      {[]client.Object{configMap(" v2.30.0\n")}, []platformv1alpha1.Release{releaseOfPlatform("v2.30.0"), releaseOfMLflow}, ""},
		"invalid version": {[]client.Object{configMap("newest")}, []platformv1alpha1.Release{releaseOfMLflow},
			`invalid platform version in apps/odh-mlflowoperator-config: platformVersion "newest": not a semantic version; write a semantic version such as 2.30.0 or v2.30.0`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newOperatorFixture(t, append(tc.objects, mlflowOperatorWith())...)
			f.expectReconcile(2)
			m := f.get()
			if diff := cmp.Diff(tc.want, m.Status.Releases); diff != "" {
				t.Errorf("releases differ (-want +got):\n%s", diff)
			}
			want := platformv1alpha1.Distribution{Name: "Open Data Hub"}
			if i := slices.IndexFunc(tc.want, func(r platformv1alpha1.Release) bool { return r.Name == platformRelease }); i >= 0 {
				want.Version = tc.want[i].Version
			}
			if diff := cmp.Diff(&want, m.Status.Distribution); diff != "" {
				t.Errorf("distribution differs (-want +got):\n%s", diff)
			}
			c := conditionOf(m, ConditionVersion)
			if c.Message != tc.message || c.Message != "" && (c.Status != "False" || c.Severity != "Info" || c.Reason != "InvalidPlatformVersion") {
				t.Errorf("condition %+v, want message %q", c, tc.message)
			}
			if m.Status.Phase != "Ready" {
				t.Errorf("phase %s, want Ready regardless of the version", m.Status.Phase)
			}
			f.expectReconcile(0)
		})
	}
}

// A change of the ConfigMap changes the reported version. A failed read keeps the last version and is retried.
func TestVersionIsUpdatedFromConfigMap(t *testing.T) {
	f := newOperatorFixture(t, mlflowOperatorWith(), configMap("soon"))
	f.expectReconcile(2)
	current := configMap("")
	if err := f.client.Get(t.Context(), client.ObjectKeyFromObject(current), current); err != nil {
		t.Fatal(err)
	}
	current.Data[versionKey] = "2.31.0"
	if err := f.client.Update(t.Context(), current); err != nil {
		t.Fatal(err)
	}
	versions := f.logic.versions
	f.logic.versions = interceptor.NewClient(f.client, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	})
	if _, err := f.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil || !strings.Contains(err.Error(), "apps/odh-mlflowoperator-config") {
		t.Errorf("got error %v, want one that names the ConfigMap", err)
	}
	if m := f.get(); conditionOf(m, ConditionVersion).Type == "" || conditionOf(m, "Ready").Status != "True" {
		t.Errorf("a failed read changed the status: %+v", m.Status)
	}
	f.logic.versions = versions
	f.expectReconcile(1)
	if m := f.get(); !slices.Equal(m.Status.Releases, []platformv1alpha1.Release{releaseOfPlatform("2.31.0"), releaseOfMLflow}) || conditionOf(m, ConditionVersion).Type != "" {
		t.Errorf("got status %+v, want release 2.31.0 and no %s", m.Status, ConditionVersion)
	}
	f.expectReconcile(0)
	f.logic.versions = nil // the namespace of the ConfigMap is unknown
	f.expectReconcile(1)
	if m := f.get(); !slices.Equal(m.Status.Releases, []platformv1alpha1.Release{releaseOfMLflow}) {
		t.Errorf("got status %+v, want only the release of MLflow", m.Status)
	}
}

// [mlflow-63]
func TestValidateVersion(t *testing.T) {
	long := "1.2.3-" + strings.Repeat("a", 58)
	for text, valid := range map[string]bool{
		"2.30.0": true, "v2.30.0": true, "2.30.0-rc.1+build.5": true, "0.0.1": true, long: true,
		long + "b": false, "2.30": false, "2": false, "v": false, "latest": false, "2.30.0.1": false, "02.1.0": false, "2.30.x": false, "V2.30.0": false,
	} {
		if err := validateVersion(text); (err == nil) != valid {
			t.Errorf("%q: unexpected error: %v", text, err)
		}
	}
}

// [mlflow-64] The deletion waits for the MLflow objects and reports that.
func TestDeletionWaitsForMLflows(t *testing.T) {
	isDeleted := func(f *operatorFixture) bool {
		return apierrors.IsNotFound(f.client.Get(f.Context(), key, &platformv1alpha1.MLflowOperator{}))
	}
	f := newOperatorFixture(t, mlflowOperatorWith(), instance(), configMap("2.30.0"))
	f.expectReconcile(2)
	if err := f.client.Delete(t.Context(), f.get()); err != nil {
		t.Fatal(err)
	}
	f.update(func(m *platformv1alpha1.MLflowOperator) { m.Generation = 2 })
	f.expectReconcile(1)
	m := f.get()
	ready := conditionOf(m, "Ready")
	if ready.Status != "False" || ready.Reason != "MLflowInstancesPresent" || ready.Message != "cannot delete MLflowOperator while 1 MLflow instance(s) still exist: delete them first" {
		t.Errorf("got condition %+v, want False with MLflowInstancesPresent and the number of MLflow objects", ready)
	}
	if m.Status.Phase != "Progressing" || m.Status.ObservedGeneration != 2 || len(m.Status.Releases) != 2 {
		t.Errorf("got status %+v, want Progressing for generation 2 with two releases", m.Status)
	}
	f.expectReconcile(0)
	if err := f.client.Delete(t.Context(), instance()); err != nil {
		t.Fatal(err)
	}
	f.expectReconcile(1)
	if !isDeleted(f) {
		t.Error("the MLflowOperator was not removed")
	}
}

// If discovery does not list the MLflow API, the API server is queried, because removing the finalizer is irreversible.
func TestDeletionWithoutMLflowAPI(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []client.Object
		err     error
		deleted bool
	}{
		"API not served":                   {nil, &meta.NoKindMatchError{GroupKind: mlflowKind.GroupKind()}, true},
		"API removed during the reconcile": {nil, apierrors.NewNotFound(schema.GroupResource{Resource: "mlflows"}, ""), true},
		"MLflow exists":                    {[]client.Object{instance()}, nil, false},
		"read error":                       {nil, errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			f := newOperatorFixture(t, append(tc.objects, mlflowOperatorWith())...)
			f.expectReconcile(2)
			f.served = capability.NewSet(mlflowOperatorKind)
			if err := f.client.Delete(t.Context(), f.get()); err != nil {
				t.Fatal(err)
			}
			f.requestError = func(client.Object) error { return tc.err }
			_, err := f.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
			if failed := err != nil; failed != (tc.err != nil && !tc.deleted) {
				t.Errorf("got error %v, want one: %t", err, tc.err != nil && !tc.deleted)
			}
			if deleted := apierrors.IsNotFound(f.client.Get(t.Context(), key, &platformv1alpha1.MLflowOperator{})); deleted != tc.deleted {
				t.Errorf("deleted: %t, want %t", deleted, tc.deleted)
			}
		})
	}
}

// [D32] A conflict is retried and not an error.
func TestConflictIsRetried(t *testing.T) {
	f := newOperatorFixture(t, mlflowOperatorWith())
	f.conflicts = 1
	result, err := f.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter == 0 {
		t.Fatalf("result %+v, error %v, want a requeue without an error", result, err)
	}
	if len(f.get().Status.Conditions) > 0 {
		t.Fatal("the status was written despite the conflict")
	}
	f.expectReconcile(1)
	if ready := conditionOf(f.get(), "Ready"); ready.Status != "True" {
		t.Errorf("got condition %+v, want True", ready)
	}
}

// A paused object has the condition Paused and is not reconciled.
func TestPausedObjectIsNotReconciled(t *testing.T) {
	f := newOperatorFixture(t, mlflowOperatorWith())
	f.expectReconcile(2)
	f.update(func(m *platformv1alpha1.MLflowOperator) {
		m.Annotations = map[string]string{names.PausedAnnotation: "true"}
		m.Spec.GatewayName = ""
	})
	f.expectReconcile(1)
	m := f.get()
	if paused := conditionOf(m, "Paused"); paused.Status != "True" || paused.Severity != "Info" || conditionOf(m, "Ready").Status != "True" {
		t.Errorf("got conditions %+v, want Paused with severity Info and an unchanged Ready", m.Status.Conditions)
	}
	f.expectReconcile(0)
	f.update(func(m *platformv1alpha1.MLflowOperator) { m.Annotations = nil })
	f.expectReconcile(1)
	if m := f.get(); conditionOf(m, "Paused").Type != "" || conditionOf(m, "Ready").Reason != "ConfigPending" {
		t.Errorf("got conditions %+v, want no Paused and Ready with ConfigPending", m.Status.Conditions)
	}
}

// Only the creation and deletion of an MLflow change the number of MLflow objects.
func TestIgnoreUpdates(t *testing.T) {
	p := ignoreUpdates()
	if !p.Create(event.CreateEvent{Object: instance()}) || !p.Delete(event.DeleteEvent{Object: instance()}) ||
		p.Update(event.UpdateEvent{ObjectOld: instance(), ObjectNew: instance()}) {
		t.Error("want only creation and deletion to trigger a reconcile")
	}
}

func TestToMetaConditions(t *testing.T) {
	list := toMetaConditions([]platformv1alpha1.Condition{{Type: "A", Status: "True", Reason: "R", Message: "m", ObservedGeneration: 2, LastTransitionTime: minutesAfterStart(1), Severity: "Info"}})
	if diff := cmp.Diff([]metav1.Condition{{Type: "A", Status: "True", Reason: "R", Message: "m", ObservedGeneration: 2, LastTransitionTime: minutesAfterStart(1)}}, list); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
}
