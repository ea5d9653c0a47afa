package modelmesh_pods_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/apis/serving/v1alpha1"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/resources"
	"github.com/odh-platform/odh-platform-operator/controllers/modelmesh/takeover"
	"github.com/odh-platform/odh-platform-operator/pkg/apply"
	meshsettings "github.com/odh-platform/odh-platform-operator/pkg/modelmesh/settings"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const recordingsDir = "../../../controllers/modelmesh/resources/testdata/recordings"

// recordings returns the names of the files with objects of the legacy controller.
func recordings() []string {
	files, err := filepath.Glob(filepath.Join(recordingsDir, "*.yaml"))
	if err != nil || len(files) < 6 {
		panic("want at least 6 recordings in " + recordingsDir)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".yaml"))
	}
	return names
}

// recording holds a runtime and the Deployment that the legacy controller created for it, both in the namespace that the
// test passes to loadRecording.
type recording struct {
	runtime    *unstructured.Unstructured
	deployment *unstructured.Unstructured
	in         resources.RuntimeInputs
}

func loadRecording(name, namespace string) recording {
	GinkgoHelper()
	objects := framework.Recording(filepath.Join(recordingsDir, name+".yaml"))
	r := recording{runtime: objects[0]}
	settings := meshsettings.Default()
	for _, object := range objects[1:] {
		switch {
		case object.GetName() == "model-serving-config":
			text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
			Expect(err).NotTo(HaveOccurred())
			settings, _, err = meshsettings.Read(settings, text)
			Expect(err).NotTo(HaveOccurred())
		case object.GetKind() == "Deployment":
			r.deployment = object
		}
	}
	r.runtime.SetNamespace(namespace)
	r.deployment.SetNamespace(namespace)
	servingRuntime := &v1alpha1.ServingRuntime{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(r.runtime.Object, servingRuntime)).To(Succeed())
	r.in = resources.RuntimeInputs{
		NamespaceInputs: resources.NamespaceInputs{Namespace: namespace, Settings: settings},
		Form:            resources.Legacy, Name: servingRuntime.Name, Annotations: servingRuntime.Annotations, Spec: &servingRuntime.Spec,
	}
	live := &appsv1.Deployment{}
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(r.deployment.Object, live)).To(Succeed())
	r.in.Replicas = live.Spec.Replicas
	for _, volume := range live.Spec.Template.Spec.Volumes {
		if claim := volume.PersistentVolumeClaim; claim != nil {
			r.in.Claims = append(r.in.Claims, claim.ClaimName)
		}
	}
	if name := settings.TLS.SecretName; name != "" {
		r.in.TLS = &resources.TLSInputs{SecretName: name, HasCA: true}
	}
	return r
}

// createLegacyRuntime creates the runtime of a recording and its Deployment as the legacy controller did, and returns the runtime.
func createLegacyRuntime(ctx context.Context, r recording) client.Object {
	GinkgoHelper()
	Expect(env.Admin.Create(ctx, r.runtime)).To(Succeed())
	lastApplied, err := json.Marshal(r.deployment.Object)
	Expect(err).NotTo(HaveOccurred())
	env.CreateRecording(ctx, []*unstructured.Unstructured{r.deployment}, framework.RecordingOptions{
		Owner: r.runtime, Manager: takeover.LegacyManager, Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: string(lastApplied)},
	})
	return r.runtime
}

// getDeployment returns the Deployment of a runtime.
func getDeployment(ctx context.Context, in resources.RuntimeInputs) *appsv1.Deployment {
	GinkgoHelper()
	d := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: in.Namespace, Name: resources.DeploymentName(in.Settings.ServiceName, in.Name)}
	Expect(env.Admin.Get(ctx, key, d)).To(Succeed())
	return d
}

// newApplier returns an applier without state, as after a restart of the manager.
func newApplier() *apply.Applier {
	return apply.New(apply.Options{
		Client: env.Admin, Live: env.Admin, FieldOwner: modelmesh.FieldOwner, Component: modelmesh.ComponentName,
		LegacyManagers: []string{takeover.LegacyManager}, StripAnnotations: []string{corev1.LastAppliedConfigAnnotation, "manifestival"},
		FullObjectKinds: []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("Deployment")},
	})
}

func adoptAny(*unstructured.Unstructured) bool { return true }

// applyDeployment applies the Deployment of a runtime.
func applyDeployment(ctx context.Context, owner client.Object, in resources.RuntimeInputs) error {
	GinkgoHelper()
	built, err := resources.BuildDeployment(in)
	Expect(err).NotTo(HaveOccurred())
	return newApplier().Apply(ctx, owner, apply.Desired{{Config: built.Config, AdoptIf: adoptAny}})
}

// createRestrictedNamespace creates a namespace that enforces the restricted level of Pod Security.
func createRestrictedNamespace(ctx context.Context) string {
	GinkgoHelper()
	name := env.Namespace(ctx, "restricted")
	env.Patch(ctx, framework.NamespaceNamed(name), map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"}},
	})
	return name
}

// dryRunPod creates a pod of a runtime in a dry run. It first waits for the ServiceAccount of the namespace, which pods require.
func dryRunPod(ctx context.Context, in resources.RuntimeInputs) error {
	GinkgoHelper()
	built, err := resources.BuildDeployment(in)
	Expect(err).NotTo(HaveOccurred())
	text, err := json.Marshal(built.Config)
	Expect(err).NotTo(HaveOccurred())
	deployment := &appsv1.Deployment{}
	Expect(json.Unmarshal(text, deployment)).To(Succeed())
	account := &corev1.ServiceAccount{}
	Eventually(func() error {
		return env.Admin.Get(ctx, types.NamespacedName{Namespace: in.Namespace, Name: "default"}, account)
	}).WithContext(ctx).WithTimeout(waitTimeout).WithPolling(pollInterval).Should(Succeed())
	pod := &corev1.Pod{ObjectMeta: deployment.Spec.Template.ObjectMeta, Spec: deployment.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = in.Namespace, "try-"
	return env.Admin.Create(ctx, pod, client.DryRunAll)
}
