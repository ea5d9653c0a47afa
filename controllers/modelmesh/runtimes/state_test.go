package runtimes

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/meshtest"
)

// failReads makes cached reads of a kind fail; the kind of lists ends with List.
func (env *testEnv) failReads(kind string) {
	broken := errors.New(kind + " cannot be read")
	env.Cached = interceptor.NewClient(env.Cached.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if kindOf(o) == kind {
				return broken
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if strings.Contains(strings.TrimPrefix(typeName(l), "*"), kind) {
				return broken
			}
			return c.List(ctx, l, opts...)
		},
	})
}

func typeName(l client.ObjectList) string {
	switch l.(type) {
	case *v1alpha1.ServingRuntimeList:
		return "ServingRuntimeList"
	case *v1alpha1.ClusterServingRuntimeList:
		return "ClusterServingRuntimeList"
	case *v1alpha1.PredictorList:
		return "PredictorList"
	default:
		return "InferenceServiceList"
	}
}

// After a read error nothing is written or deleted.
func TestReadErrorEndsReconcile(t *testing.T) {
	for _, kind := range []string{"ClusterServingRuntimeList", "ServingRuntimeList", "PredictorList", "InferenceServiceList"} {
		t.Run(kind, func(t *testing.T) {
			w := newTestEnv(t, localRuntime("r", "sklearn"))
			w.reconcileUntilStable("ns")
			w.failReads(kind)
			if _, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("got error %v, want one containing 'cannot be read'", err)
			}
			w.expect("writes", w.takeWrites(), nil)
		})
	}
	w := newTestEnv(t, localRuntime("r", "sklearn"))
	w.reconcileUntilStable("ns")
	w.Settings = func(context.Context, string) (meshsettings.Settings, error) {
		return meshsettings.Settings{}, errors.New("no good ones yet")
	}
	if _, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || err.Error() != "no good ones yet" {
		t.Errorf("got error %v, want one containing 'no good ones yet'", err)
	}
	w.expect("writes without settings", w.takeWrites(), nil)
}

func TestSecretReadErrorEndsReconcile(t *testing.T) {
	for _, name := range []string{"own/" + meshsettings.DefaultEtcdSecret, "ns/" + meshsettings.DefaultStorageSecret, "ns/serving-tls", "own/serving-tls"} {
		w := newTestEnv(t, localRuntime("r", "sklearn"))
		w.settings.TLS.SecretName = "serving-tls"
		w.create(secretNamed("ns", meshsettings.DefaultStorageSecret), secretNamed("ns", "serving-tls"), secretNamed("own", "serving-tls"))
		w.fail = func(verb, kind, which string) error {
			if verb == "get" && kind == "Secret" && which == name {
				return errors.New("refused")
			}
			return nil
		}
		if _, err := w.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%s: got error %v, want one containing 'refused'", name, err)
		}
		w.expect("writes without "+name, w.takeWrites(), nil)
	}
}

// In a single-namespace installation the operator's Deployment owns the Service; it is read once.
func TestServiceOwnerInSingleNamespace(t *testing.T) {
	manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "modelmesh-controller", UID: "uid-of-the-manager"}}
	w := newTestEnv(t, manager)
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	for range 3 {
		owner, restricted, err := w.serviceOwner(t.Context(), "own")
		if err != nil || restricted || owner.GetUID() != "uid-of-the-manager" || owner.GetName() != "modelmesh-controller" || owner.GetNamespace() != "own" {
			t.Errorf("serviceOwner returned owner %v, restricted %t and error %v", owner, restricted, err)
		}
	}
	w.expect("reads", w.reads, []string{"get Deployment own/modelmesh-controller"})

	w = newTestEnv(t)
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	if _, _, err := w.serviceOwner(t.Context(), "own"); err == nil || !strings.Contains(err.Error(), "reading *v1.Deployment own/modelmesh-controller, which owns the Service") {
		t.Errorf("unexpected error: %v", err)
	} else if !strings.Contains(err.Error(), "in CONTROLLER_DEPLOYMENT") {
		t.Errorf("no remedy in %v", err)
	}
}

// The operator's namespace may have no label and is then read once. The Pod Security label is read from the metadata.
func TestServiceOwnerIsNamespace(t *testing.T) {
	w := newTestEnv(t)
	for range 3 {
		owner, restricted, err := w.serviceOwner(t.Context(), "own")
		if err != nil || restricted || owner.GetUID() != "uid-of-own" {
			t.Errorf("serviceOwner returned owner %v, restricted %t and error %v", owner, restricted, err)
		}
	}
	w.expect("reads", w.reads, []string{"get Namespace /own"})
	own := &corev1.Namespace{}
	w.get(own, "", "own")
	own.Labels = map[string]string{modelmesh.LabelEnforce: "restricted"}
	w.must(w.api.Update(t.Context(), own))
	w.restart()
	for range 2 { // as it was read first
		if owner, restricted, err := w.serviceOwner(t.Context(), "own"); err != nil || !restricted || owner.GetUID() != "uid-of-own" {
			t.Errorf("restricted: %v, %t, %v", owner, restricted, err)
		}
	}
	for level, want := range map[string]bool{"restricted": true, "baseline": false, "privileged": false, "": false} {
		served := meshtest.Namespace("ns", "true")
		served.Labels[modelmesh.LabelEnforce] = level
		w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(served)}}
		owner, restricted, err := w.serviceOwner(t.Context(), "ns")
		if err != nil || restricted != want || owner.GetUID() != types.UID("uid-of-ns") {
			t.Errorf("%s: serviceOwner returned owner %v, restricted %t and error %v", level, owner, restricted, err)
		}
	}
	w.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: brokenReader{}}}
	if _, _, err := w.serviceOwner(t.Context(), "ns"); err == nil {
		t.Error("want an error for an unknown namespace")
	}
}

// Runtimes support models in enabled namespaces only.
func TestHasSupportingRuntime(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "sklearn"), localRuntime("off", "onnx", disabled), localRuntime("one", "pmml", singleModel), clusterRuntime("c", "xgboost"))
	for label, want := range map[string]bool{
		"mt:sklearn": true, "rt:r": true, "mt:xgboost": true, "mt:onnx": false, "rt:off": false, "mt:pmml": false, "mt:sklearn|pv:v2": false, "mt:other": false,
	} {
		got, err := w.HasSupportingRuntime(t.Context(), "ns", label)
		if err != nil || got != want {
			t.Errorf("%s: HasSupportingRuntime returned %t, error %v", label, got, err)
		}
	}
	if got, err := w.HasSupportingRuntime(t.Context(), "stranger", "mt:xgboost"); err != nil || got {
		t.Errorf("namespace without models: %t, error %v", got, err)
	}
	w.Settings = func(context.Context, string) (meshsettings.Settings, error) {
		return meshsettings.Settings{}, errors.New("none")
	}
	if _, err := w.HasSupportingRuntime(t.Context(), "ns", "mt:xgboost"); err == nil {
		t.Error("want an error while the settings cannot be read")
	}
	w = newTestEnv(t)
	w.failReads("ServingRuntimeList")
	if _, err := w.HasSupportingRuntime(t.Context(), "ns", "mt:xgboost"); err == nil {
		t.Error("want an error while the runtimes cannot be read")
	}
}

// A valid runtime that cannot be built gets one Event.
func TestBuildErrorIsReportedOnce(t *testing.T) {
	w := newTestEnv(t, localRuntime("r", "sklearn", func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "not-there", MountPath: "/x"}}
	}))
	for range 4 {
		w.reconcileOnce("ns")
	}
	var emitted []string
	for len(w.events.Events) > 0 {
		emitted = append(emitted, <-w.events.Events)
	}
	if len(emitted) != 1 || !strings.Contains(emitted[0], ReasonInvalid) || !strings.Contains(emitted[0], "not-there") {
		t.Errorf("got events %q, want one that names the missing object", emitted)
	}
}
