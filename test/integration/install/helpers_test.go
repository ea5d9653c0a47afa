package install_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
	"github.com/odh-platform/odh-platform-operator/test/cluster/operator"
	"github.com/odh-platform/odh-platform-operator/test/docs"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	managerName = "odh-platform-operator-controller-manager"
	keepLabel   = "odh-platform-operator/keep"
)

// createRestrictedNamespace creates a namespace that enforces the restricted Pod Security level.
func createRestrictedNamespace(ctx context.Context, name string) {
	GinkgoHelper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	Expect(client.IgnoreAlreadyExists(env.Admin.Create(ctx, namespace))).To(Succeed())
}

func root() string {
	GinkgoHelper()
	dir, err := cluster.RepositoryRoot()
	Expect(err).NotTo(HaveOccurred())
	return dir
}

// command runs a program in the checkout with the environment of a user and the kubeconfig of the suite.
func command(ctx context.Context, name string, args ...string) (string, error) {
	GinkgoHelper()
	program := exec.CommandContext(ctx, name, args...)
	program.Dir = root()
	program.Env = append(docs.Environment(), "KUBECONFIG="+env.KubeconfigPath)
	output, err := program.CombinedOutput()
	fmt.Fprintf(GinkgoWriter, "%s %s\n%s\n", filepath.Base(name), strings.Join(args, " "), output)
	return string(output), err
}

func makeTarget(ctx context.Context, args ...string) (string, error) {
	GinkgoHelper()
	return command(ctx, "make", append(args, "KUBECTL="+kubectl)...)
}

func mustMake(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := makeTarget(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return output
}

func mustKubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := command(ctx, kubectl, args...)
	Expect(err).NotTo(HaveOccurred(), "%s", output)
	return output
}

// kubectlApply applies a manifest with kubectl and returns the output, including warnings.
func kubectlApply(ctx context.Context, namespace, manifest string) (string, error) {
	GinkgoHelper()
	program := exec.CommandContext(ctx, kubectl, "--kubeconfig="+env.KubeconfigPath, "-n", namespace, "apply", "--server-side", "-f", "-")
	program.Stdin = strings.NewReader(manifest)
	output, err := program.CombinedOutput()
	return string(bytes.TrimSpace(output)), err
}

// renderOverlay returns the objects of an overlay, and uninstalls them at the end of the spec.
func renderOverlay(ctx context.Context, overlay string) []*unstructured.Unstructured {
	GinkgoHelper()
	objects, err := operator.Kustomize("config/overlays/" + overlay)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) {
		mustMake(ctx, "undeploy", "OVERLAY="+overlay)
		removeFinalizers(ctx)
		mustMake(ctx, "uninstall", "FORCE=1")
	}, NodeTimeout(specTimeout))
	return objects
}

// kindsWithFinalizer are the kinds of objects in these specs to which the manager adds a finalizer.
var kindsWithFinalizer = []schema.GroupVersionKind{
	{Group: "workload.codeflare.dev", Version: "v1beta2", Kind: "AppWrapper"},
	{Group: "modelregistry.opendatahub.io", Version: "v1beta1", Kind: "ModelRegistry"},
	{Group: "ray.io", Version: "v1", Kind: "RayCluster"},
}

// removeFinalizers removes the finalizers of objects of a failed spec, because no manager is running.
func removeFinalizers(ctx context.Context) {
	GinkgoHelper()
	for _, kind := range kindsWithFinalizer {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := env.Admin.List(ctx, list); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			continue
		} else {
			Expect(err).NotTo(HaveOccurred())
		}
		for i := range list.Items {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
			Expect(client.IgnoreNotFound(env.Admin.Patch(ctx, &list.Items[i], patch))).To(Succeed())
		}
	}
}

// live returns the stored object; nil if it does not exist or its kind is not served.
func live(ctx context.Context, object *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GroupVersionKind())
	err := env.Admin.Get(ctx, client.ObjectKeyFromObject(object), found)
	if apierrors.IsNotFound(err) || strings.Contains(fmt.Sprint(err), "no matches for kind") {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return found
}

// waitRolledOut waits until the rollout of the manager's Deployment is complete, and returns it.
func waitRolledOut(ctx context.Context, namespace string) *appsv1.Deployment {
	GinkgoHelper()
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: managerName}}
	env.WaitFor(ctx, deployment, func(g Gomega) {
		g.Expect(deployment.Status.ObservedGeneration).To(Equal(deployment.Generation))
		g.Expect(deployment.Status.AvailableReplicas).To(Equal(*deployment.Spec.Replicas), "%+v", deployment.Status)
	})
	return deployment
}

// podOnlyFlags are flags with fixed ports, which are available only in a pod.
var podOnlyFlags = []string{"--health-probe-bind-address", "--metrics-bind-address"}

// startManager starts the manager with the arguments, variables and ServiceAccount of its Deployment, except podOnlyFlags and variables
// with valueFrom. files maps mount paths in the arguments to local paths.
func startManager(ctx context.Context, objects []*unstructured.Unstructured, deployment *appsv1.Deployment, files map[string]string) *framework.Manager {
	GinkgoHelper()
	routeWebhooks(ctx, objects)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	Expect(container.Command).To(Equal([]string{"/manager"}))
	var args, variables []string
	for _, arg := range container.Args {
		flag, value, _ := strings.Cut(arg, "=")
		if mounted, ok := files[value]; ok {
			arg = flag + "=" + mounted
		}
		if !slices.Contains(podOnlyFlags, flag) {
			args = append(args, arg)
		}
	}
	for _, variable := range container.Env {
		if variable.ValueFrom == nil {
			variables = append(variables, variable.Name+"="+variable.Value)
		}
	}
	return env.StartManager(ctx, framework.ManagerOptions{
		ServiceAccount: types.NamespacedName{Namespace: deployment.Namespace, Name: pod.ServiceAccountName},
		WebhookPort:    port, Args: args, Env: variables,
	})
}

// routeWebhooks changes the webhooks of the installation to call the local port of the manager.
func routeWebhooks(ctx context.Context, objects []*unstructured.Unstructured) {
	GinkgoHelper()
	var found []*unstructured.Unstructured
	for _, object := range objects {
		if kind := object.GetKind(); kind == "Service" || kind == "CustomResourceDefinition" || strings.HasSuffix(kind, "WebhookConfiguration") {
			found = append(found, live(ctx, object))
		}
	}
	Expect(operator.RouteWebhooks(found, int64(port))).To(Succeed())
	for _, object := range found {
		Expect(env.Admin.Update(ctx, object)).To(Succeed())
	}
}

// manifestHash returns a hash of the manifests in the checkout.
func manifestHash() string {
	GinkgoHelper()
	hash := sha256.New()
	err := filepath.WalkDir(filepath.Join(root(), "config"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(hash, "%s %d %s\n", path, len(content), content)
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return hex.EncodeToString(hash.Sum(nil))
}
