package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// route returns an object of a kind without a Go type.
func route() Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: "route.openshift.io", Version: "v1", Kind: "Route"})
	u.SetNamespace("ns")
	u.SetName("server")
	return Object{Config: client.ApplyConfigurationFromUnstructured(u)}
}

// serverInStages returns a server with prerequisites and exposure, not in the order of their stages.
func serverInStages() Desired {
	desired := Desired{route(), newDeployment("image")}
	policy := networkingv1ac.NetworkPolicy("server", "ns").WithSpec(networkingv1ac.NetworkPolicySpec().
		WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"app": "server"})))
	desired.Add(corev1ac.Service("server", "ns"), policy, corev1ac.ConfigMap("rules", "ns"),
		rbacv1ac.Role("server", "ns"), corev1ac.Secret("keys", "ns"), corev1ac.ServiceAccount("server", "ns"))
	return desired
}

// A foreign or rejected object stops the later stages. A failure in the stage Exposure stops nothing.
func TestApplySkipsStagesAfterFailedStage(t *testing.T) {
	prerequisites := []string{"NetworkPolicy", "ConfigMap", "Role", "Secret", "ServiceAccount"}
	all := slices.Concat(prerequisites, []string{"Deployment", "Route", "Service"})
	meta := metav1.ObjectMeta{Namespace: "ns", Name: "server"}
	routeOfAnother := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "route.openshift.io/v1", "kind": "Route",
		"metadata": map[string]any{"namespace": "ns", "name": "server"}}}
	without := func(kinds ...string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(kind string) bool { return slices.Contains(kinds, kind) })
	}
	for name, test := range map[string]struct {
		foreign  client.Object
		rejected string // a kind
		written  []string
		skipped  bool
	}{
		"no failure":             {written: all},
		"foreign ServiceAccount": {foreign: &corev1.ServiceAccount{ObjectMeta: meta}, written: without("ServiceAccount", "Deployment", "Route", "Service"), skipped: true},
		"foreign NetworkPolicy":  {foreign: &networkingv1.NetworkPolicy{ObjectMeta: meta}, written: without("NetworkPolicy", "Deployment", "Route", "Service"), skipped: true},
		"foreign ConfigMap": {foreign: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "rules"}},
			written: without("ConfigMap", "Deployment", "Route", "Service"), skipped: true},
		"foreign Role":        {foreign: &rbacv1.Role{ObjectMeta: meta}, written: without("Role", "Deployment", "Route", "Service"), skipped: true},
		"rejected policy":     {rejected: "NetworkPolicy", written: without("NetworkPolicy", "Deployment", "Route", "Service"), skipped: true},
		"rejected Deployment": {rejected: "Deployment", written: without("Deployment", "Route", "Service"), skipped: true},
		"foreign Service":     {foreign: &corev1.Service{ObjectMeta: meta}, written: without("Service")},
		"foreign Route":       {foreign: routeOfAnother, written: without("Route")},
		"rejected Route":      {rejected: "Route", written: without("Route")},
	} {
		t.Run(name, func(t *testing.T) {
			a, written := newStageTest(t, test.rejected)
			if test.foreign != nil {
				a.must(a.server.Create(t.Context(), test.foreign))
			}
			err := a.Apply(t.Context(), a.owner, serverInStages())
			byStage := func(a, b string) int { return int(stageOf[a] - stageOf[b]) }
			if !slices.IsSortedFunc(*written, byStage) {
				t.Errorf("a later stage was written first: %v", *written)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(test.written)), slices.Sorted(slices.Values(*written))); diff != "" {
				t.Errorf("written kinds (-want +got):\n%s", diff)
			}
			failed := test.foreign != nil || test.rejected != ""
			if (err != nil) != failed || skipsStages(err) != test.skipped || OnlyExposureFailed(err) != (failed && !test.skipped) {
				t.Errorf("later stages skipped: %t, only exposure failed: %t, error %v", skipsStages(err), OnlyExposureFailed(err), err)
			}
			if IsBlocked(err) != (test.foreign != nil) {
				t.Errorf("IsBlocked returned %t", IsBlocked(err))
			}
		})
	}
}

// The message contains the failure and the objects that are held back.
func TestStageErrorNamesFailedPrerequisite(t *testing.T) {
	a, _ := newStageTest(t, "")
	a.must(a.server.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "server"}}))
	err := a.Apply(t.Context(), a.owner, serverInStages())
	const want = "applying ServiceAccount ns/server: ServiceAccount ns/server exists and was not created by this operator; delete it or recreate it under another name, " +
		"and the operator will create its own; until then not written: Deployment ns/server, Route ns/server, Service ns/server"
	if err == nil || err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Kind != "ServiceAccount" {
		t.Errorf("got failed object %+v, want the ServiceAccount", failed)
	}
	a.must(a.server.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "server"}}))
	a.must(a.Apply(t.Context(), a.owner, serverInStages()))
}

// newStageTest returns an Applier whose server rejects a kind, and the list of written kinds.
func newStageTest(t *testing.T, rejected string) (*testApplier, *[]string) {
	a, written := newTestApplier(t), &[]string{}
	var mu sync.Mutex
	a.server = fake.NewClientBuilder().WithReturnManagedFields().WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithObjects(a.owner.DeepCopy()).
		WithInterceptorFuncs(interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				k := Object{Config: config}.Key()
				if k.Kind == rejected {
					return apierrors.NewForbidden(schema.GroupResource{Resource: strings.ToLower(k.Kind)}, k.Name, errors.New("exceeded quota"))
				}
				err := c.Apply(ctx, config, opts...)
				if err == nil {
					mu.Lock()
					defer mu.Unlock()
					*written = append(*written, k.Kind)
				}
				return err
			},
		}).Build()
	a.restart()
	a.MaxParallel = 4
	return a, written
}

// The API server rejects a binding whose role does not exist.
func TestApplyWritesBindingsAfterRoles(t *testing.T) {
	a, written := newStageTest(t, "")
	var desired Desired
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		desired.Add(rbacv1ac.RoleBinding(name, "ns").WithRoleRef(rbacv1ac.RoleRef().WithKind("Role").WithName(name)), rbacv1ac.Role(name, "ns"))
	}
	a.must(a.Apply(t.Context(), a.owner, desired))
	if want := slices.Concat(slices.Repeat([]string{"Role"}, 5), slices.Repeat([]string{"RoleBinding"}, 5)); !slices.Equal(*written, want) {
		t.Errorf("written in this order: %v", *written)
	}
}

func TestApplyReturnsPanicAsError(t *testing.T) {
	a, written := newStageTest(t, "")
	a.must(a.server.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "server"}}))
	desired := Desired{{Config: corev1ac.ServiceAccount("server", "ns"), AdoptIf: func(*unstructured.Unstructured) bool { panic("broken rule") }}}
	desired.Add(corev1ac.ConfigMap("rules", "ns"))
	err := a.Apply(t.Context(), a.owner, desired)
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Kind != "ServiceAccount" || !strings.Contains(err.Error(), "panic: broken rule") {
		t.Errorf("got %v", err)
	}
	if !slices.Equal(*written, []string{"ConfigMap"}) {
		t.Errorf("written: %v", *written)
	}
}

func TestDesiredInStages(t *testing.T) {
	desired := serverInStages()
	if got := desired.InStages(Exposure, Workloads); len(got) != 3 || stageOf[got[0].Key().Kind] != Exposure || stageOf[got[1].Key().Kind] != Workloads {
		t.Errorf("got %d objects, want 3 in the order of desired, the Route first", len(got))
	}
	if invalid := (Desired{{Config: unknownConfig{}}}); len(invalid.InStages(Prerequisites)) != 1 {
		t.Error("want the earliest stage for an object of an unknown type, so that its error is reported first")
	}
}

// skipsStages reports whether an error lists objects of later stages.
func skipsStages(err error) bool {
	return err != nil && strings.Contains(err.Error(), "until then not written")
}
