package runtimes

import (
	"context"
	"errors"
	"fmt"
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

// failLists fails lists of a type, such as PredictorList, from the cache.
func (env *testEnv) failLists(listType string) {
	readErr := errors.New(listType + " cannot be read")
	env.Cached = interceptor.NewClient(env.Cached.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if strings.HasSuffix(fmt.Sprintf("%T", l), "."+listType) {
				return readErr
			}
			return c.List(ctx, l, opts...)
		},
	})
}

// After a read error nothing is written or deleted.
func TestReadErrorEndsReconcile(t *testing.T) {
	for _, listType := range []string{"ClusterServingRuntimeList", "ServingRuntimeList", "PredictorList", "InferenceServiceList"} {
		t.Run(listType, func(t *testing.T) {
			env := newTestEnv(t, newServingRuntime("r", "sklearn"))
			env.reconcileUntilStable("ns")
			env.failLists(listType)
			if _, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("error %v, want that of the read", err)
			}
			env.expect("writes", env.takeWrites(), nil)
		})
	}
	env := newTestEnv(t, newServingRuntime("r", "sklearn"))
	env.reconcileUntilStable("ns")
	env.Settings = func(context.Context, string) (meshsettings.Settings, error) {
		return meshsettings.Settings{}, errors.New("settings are invalid")
	}
	if _, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || err.Error() != "settings are invalid" {
		t.Errorf("error %v, want that of the settings", err)
	}
	env.expect("writes without settings", env.takeWrites(), nil)
}

func TestSecretReadErrorEndsReconcile(t *testing.T) {
	for _, name := range []string{"own/" + meshsettings.DefaultEtcdSecret, "ns/" + meshsettings.DefaultStorageSecret, "ns/serving-tls", "own/serving-tls"} {
		env := newTestEnv(t, newServingRuntime("r", "sklearn"))
		env.settings.TLS.SecretName = "serving-tls"
		env.create(newSecret("ns", meshsettings.DefaultStorageSecret), newSecret("ns", "serving-tls"), newSecret("own", "serving-tls"))
		env.failRequest = func(verb, kind, key string) error {
			if verb == "get" && kind == "Secret" && key == name {
				return errors.New("read failed")
			}
			return nil
		}
		if _, err := env.Reconcile(t.Context(), modelmesh.RequestFor("ns")); err == nil || !strings.Contains(err.Error(), "read failed") {
			t.Errorf("%s: error %v, want that of the read", name, err)
		}
		env.expect("writes without "+name, env.takeWrites(), nil)
	}
}

// In a single-namespace installation the operator's Deployment owns the Service; it is read once.
func TestServiceOwnerInSingleNamespace(t *testing.T) {
	operator := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "modelmesh-controller", UID: "uid-of-the-operator"}}
	env := newTestEnv(t, operator)
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	for range 3 {
		owner, restricted, err := env.serviceOwner(t.Context(), "own")
		if err != nil || restricted || owner.GetUID() != "uid-of-the-operator" || owner.GetName() != "modelmesh-controller" || owner.GetNamespace() != "own" {
			t.Errorf("serviceOwner returned owner %v, restricted %t and error %v", owner, restricted, err)
		}
	}
	env.expect("reads", env.reads, []string{"get Deployment own/modelmesh-controller"})

	env = newTestEnv(t)
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own"}
	if _, _, err := env.serviceOwner(t.Context(), "own"); err == nil || !strings.Contains(err.Error(), "reading Deployment own/modelmesh-controller, which owns the Service") {
		t.Errorf("unexpected error: %v", err)
	} else if !strings.Contains(err.Error(), "in CONTROLLER_DEPLOYMENT") {
		t.Errorf("error %v, want the setting to fix", err)
	}
}

// Without the label, the metadata of the operator's namespace is read once. It contains the Pod Security label.
func TestServiceOwnerIsNamespace(t *testing.T) {
	env := newTestEnv(t)
	for range 3 {
		owner, restricted, err := env.serviceOwner(t.Context(), "own")
		if err != nil || restricted || owner.GetUID() != "uid-of-own" {
			t.Errorf("serviceOwner returned owner %v, restricted %t and error %v", owner, restricted, err)
		}
	}
	env.expect("reads", env.reads, []string{"get Namespace /own"})
	own := &corev1.Namespace{}
	env.get(own, "", "own")
	own.Labels = map[string]string{modelmesh.LabelEnforce: "restricted"}
	env.must(env.api.Update(t.Context(), own))
	env.restart()
	for range 2 { // the second call returns the stored metadata
		if owner, restricted, err := env.serviceOwner(t.Context(), "own"); err != nil || !restricted || owner.GetUID() != "uid-of-own" {
			t.Errorf("serviceOwner returned owner %v, restricted %t and error %v, want restricted", owner, restricted, err)
		}
	}
	for level, want := range map[string]bool{"restricted": true, "baseline": false, "privileged": false, "": false} {
		namespace := meshtest.Namespace("ns", "true")
		namespace.Labels[modelmesh.LabelEnforce] = level
		env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: meshtest.LabelledOnly(namespace)}}
		owner, restricted, err := env.serviceOwner(t.Context(), "ns")
		if err != nil || restricted != want || owner.GetUID() != types.UID("uid-of-ns") {
			t.Errorf("%s: serviceOwner returned owner %v, restricted %t and error %v", level, owner, restricted, err)
		}
	}
	env.Namespaces = &modelmesh.Namespaces{OperatorNamespace: "own", Cache: meshtest.Cache{Reader: failingReader{}}}
	if _, _, err := env.serviceOwner(t.Context(), "ns"); err == nil {
		t.Error("serviceOwner returned no error, want that of the cache")
	}
}

// Only enabled multi-model runtimes in enabled namespaces support models.
func TestHasSupportingRuntime(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "sklearn"), newServingRuntime("disabled", "onnx", disabled), newServingRuntime("single-model", "pmml", singleModel), newClusterServingRuntime("c", "xgboost"))
	for label, want := range map[string]bool{
		"mt:sklearn": true, "rt:r": true, "mt:xgboost": true, "mt:onnx": false, "rt:disabled": false, "mt:pmml": false, "mt:sklearn|pv:v2": false, "mt:other": false,
	} {
		got, err := env.HasSupportingRuntime(t.Context(), "ns", label)
		if err != nil || got != want {
			t.Errorf("%s: HasSupportingRuntime returned %t, error %v", label, got, err)
		}
	}
	if got, err := env.HasSupportingRuntime(t.Context(), "not-enabled", "mt:xgboost"); err != nil || got {
		t.Errorf("namespace that is not enabled: %t, error %v", got, err)
	}
	env.Settings = func(context.Context, string) (meshsettings.Settings, error) {
		return meshsettings.Settings{}, errors.New("settings are invalid")
	}
	if _, err := env.HasSupportingRuntime(t.Context(), "ns", "mt:xgboost"); err == nil {
		t.Error("HasSupportingRuntime returned no error, want that of the settings")
	}
	env = newTestEnv(t)
	env.failLists("ServingRuntimeList")
	if _, err := env.HasSupportingRuntime(t.Context(), "ns", "mt:xgboost"); err == nil {
		t.Error("HasSupportingRuntime returned no error, want that of the runtimes")
	}
}

// One Event reports that the Deployment of a runtime cannot be built.
func TestBuildErrorIsReportedOnce(t *testing.T) {
	env := newTestEnv(t, newServingRuntime("r", "sklearn", func(s *v1alpha1.ServingRuntimeSpec) {
		s.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "missing", MountPath: "/x"}}
	}))
	for range 4 {
		env.reconcileOnce("ns")
	}
	var emitted []string
	for len(env.events.Events) > 0 {
		emitted = append(emitted, <-env.events.Events)
	}
	if len(emitted) != 1 || !strings.Contains(emitted[0], ReasonInvalid) || !strings.Contains(emitted[0], "missing") {
		t.Errorf("events %q, want one with the missing volume", emitted)
	}
}
