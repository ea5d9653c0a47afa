package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

var readManifestsOnce = sync.OnceValues(embeddedManifests)

// shippedManifests returns the embedded manifests.
func shippedManifests(t *testing.T) manifestSet {
	t.Helper()
	s, err := readManifestsOnce()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// issueCertificate returns the Secret with the manager's certificate, issued at a time.
func issueCertificate(t *testing.T, at time.Time) *corev1.Secret {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	key := types.NamespacedName{Namespace: "opendatahub", Name: certificateSecret}
	a := certs.NewAuthority(certs.Options{
		Client: c, Secret: key, DNSNames: []string{webhookService + ".opendatahub.svc"}, Clock: clocktesting.NewFakeClock(at), Log: logr.Discard(),
	})
	if _, err := a.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{}
	if err := c.Get(t.Context(), key, s); err != nil {
		t.Fatal(err)
	}
	s.ResourceVersion = ""
	return s
}

// clusterState is the state of the cluster in a test.
type clusterState struct {
	t       *testing.T
	objects []*unstructured.Unstructured
	served  []schema.GroupVersionKind
	server  string
	plugin  string
	// fails returns the error of a request, or nil.
	fails func(verb, resource, namespace string) error
}

// clusterScoped are the kinds without a namespace.
var clusterScoped = []string{
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MLflow", "Ingress", "AIHub",
	"MLflowOperator", "ClusterServingRuntime",
}

func gvk(version, kind string) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(version, kind)
}

// add adds a typed object with its kind, or one in YAML.
func (w *clusterState) add(version, kind string, object any) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	if text, ok := object.(string); ok {
		content, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = u.UnmarshalJSON(content)
		}
		if err != nil {
			w.t.Fatalf("%v in %s", err, text)
		}
	} else {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			w.t.Fatal(err)
		}
		u.Object = content
		u.SetGroupVersionKind(gvk(version, kind))
	}
	w.objects = append(w.objects, u)
}

func (w *clusterState) documents(text string) {
	for document := range strings.SplitSeq(text, "---\n") {
		if strings.TrimSpace(document) != "" {
			w.add("", "", document)
		}
	}
}

// find returns an object of a kind, by name if given, for changes in this state only.
func (w *clusterState) find(kind, name string) *unstructured.Unstructured {
	w.t.Helper()
	i := slices.IndexFunc(w.objects, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == kind && (name == "" || u.GetName() == name)
	})
	if i < 0 {
		w.t.Fatalf("there is no %s %s", kind, name)
	}
	w.objects[i] = w.objects[i].DeepCopy()
	return w.objects[i]
}

func (w *clusterState) deleteObject(kind, name string) {
	deleted := w.find(kind, name)
	w.objects = slices.DeleteFunc(w.objects, func(u *unstructured.Unstructured) bool { return u == deleted })
}

func (w *clusterState) set(kind, name string, value any, path ...string) {
	w.t.Helper()
	if err := unstructured.SetNestedField(w.find(kind, name).Object, value, path...); err != nil {
		w.t.Fatal(err)
	}
}

// edit changes a decoded object.
func edit[T any](w *clusterState, kind, name string, change func(*T)) {
	w.t.Helper()
	u, typed := w.find(kind, name), new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed)
	change(typed)
	content, encodeErr := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err := errors.Join(err, encodeErr); err != nil {
		w.t.Fatal(err)
	}
	u.Object = content
}

// manager changes the manager's container.
func (w *clusterState) manager(change func(*corev1.Container)) {
	edit(w, "Deployment", installed.DeploymentName, func(d *appsv1.Deployment) { change(&d.Spec.Template.Spec.Containers[0]) })
}

// args adds arguments of the manager.
func (w *clusterState) args(more ...string) {
	w.manager(func(c *corev1.Container) { c.Args = append(c.Args, more...) })
}

// examine runs all checks.
func (w *clusterState) examine() []Finding {
	w.t.Helper()
	lists, listKinds := map[string]*metav1.APIResourceList{}, map[schema.GroupVersionResource]string{}
	resources := &clienttesting.Fake{}
	for _, kind := range w.served {
		plural, _ := meta.UnsafeGuessKindToResource(kind)
		listKinds[plural] = kind.Kind + "List"
		list := lists[kind.GroupVersion().String()]
		if list == nil {
			list = &metav1.APIResourceList{GroupVersion: kind.GroupVersion().String()}
			lists[list.GroupVersion] = list
			resources.Resources = append(resources.Resources, list)
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: plural.Resource, Kind: kind.Kind, Namespaced: !slices.Contains(clusterScoped, kind.Kind), Verbs: []string{"get", "list"},
		})
	}
	var objects []runtime.Object
	for _, u := range w.objects {
		objects = append(objects, u)
	}
	dynamic := fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, objects...)
	dynamic.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) { // the fake client ignores field selectors
		list, ok := a.(clienttesting.ListActionImpl)
		if !ok || list.ListRestrictions.Fields == nil || list.ListRestrictions.Fields.Empty() {
			return false, nil, nil
		}
		name, _ := list.ListRestrictions.Fields.RequiresExactMatch("metadata.name")
		all, err := dynamic.Tracker().List(list.Resource, list.Kind, list.Namespace)
		if found, ok := all.(*unstructured.UnstructuredList); ok {
			found.Items = slices.DeleteFunc(found.Items, func(u unstructured.Unstructured) bool { return u.GetName() != name })
		}
		return true, all, err
	})
	dynamic.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if w.fails == nil {
			return false, nil, nil
		}
		err := w.fails(a.GetVerb(), a.GetResource().Resource, a.GetNamespace())
		return err != nil, nil, err
	})
	cluster := &cli.Cluster{Namespace: "opendatahub", Dynamic: dynamic,
		Discovery: &fakediscovery.FakeDiscovery{Fake: resources, FakedServerVersion: &version.Info{GitVersion: w.server}}}
	o := &cli.Options{Clock: clocktesting.NewFakePassiveClock(noon), Version: w.plugin, Connect: func() (*cli.Cluster, error) { return cluster, nil }}
	found, err := runChecks(w.t.Context(), o, shippedManifests(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// forbidden returns the error for a missing permission.
func forbidden(resource string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))
}

const managerDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {namespace: opendatahub, name: odh-platform-operator-controller-manager, uid: manager, generation: 1}
spec:
  replicas: 1
  template:
    spec:
      serviceAccountName: odh-platform-operator-controller-manager
      containers:
      - name: manager
        image: quay.io/x/manager:v1.2.9
        args: ["--components=ALL"]
        env:
        - {name: POD_NAMESPACE, value: opendatahub}
        - {name: MLFLOW_IMAGE, value: "quay.io/x/mlflow:1"}
        - {name: MLFLOW_URL, value: "https://data.example.org"}
status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}
---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: opendatahub, name: odh-platform-operator}
spec: {holderIdentity: pod_1, renewTime: "2026-05-04T11:59:59.000000Z", leaseDurationSeconds: 60}
---
apiVersion: v1
kind: Service
metadata: {namespace: opendatahub, name: odh-platform-operator-webhook}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {namespace: opendatahub, name: webhook-1, labels: {kubernetes.io/service-name: odh-platform-operator-webhook}}
endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}, {addresses: [10.0.0.2], conditions: {ready: false}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: a}
subjects: [{kind: ServiceAccount, name: odh-platform-operator-controller-manager, namespace: opendatahub}]
roleRef: {kind: ClusterRole, name: a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: a, namespace: opendatahub}
subjects: [{kind: ServiceAccount, name: odh-platform-operator-controller-manager}]
roleRef: {kind: Role, name: a}
`

// convertedCRD is the CRD with two versions.
const convertedCRD = "modelregistries.modelregistry.opendatahub.io"

// base is a healthy installation that all tests share.
var base *clusterState

// healthy returns a copy of the installation without problems.
func healthy(t *testing.T) *clusterState {
	t.Helper()
	if base == nil {
		base = installation(t)
	}
	w := *base
	w.t, w.objects, w.served = t, slices.Clone(base.objects), slices.Clone(base.served)
	return &w
}

func installation(t *testing.T) *clusterState {
	t.Helper()
	w := &clusterState{t: t, server: "v1.34.1", plugin: "1.2.3", served: []schema.GroupVersionKind{
		gvk("v1", "Service"), gvk("v1", "Secret"), gvk("v1", "ConfigMap"), gvk("apps/v1", "Deployment"), gvk("coordination.k8s.io/v1", "Lease"),
		gvk("rbac.authorization.k8s.io/v1", "ClusterRole"), gvk("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
		gvk("rbac.authorization.k8s.io/v1", "Role"), gvk("rbac.authorization.k8s.io/v1", "RoleBinding"), gvk("discovery.k8s.io/v1", "EndpointSlice"),
		gvk("apiextensions.k8s.io/v1", "CustomResourceDefinition"), gvk("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
		gvk("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"), capability.HTTPRoute, capability.KueueClusterQueue, capability.ServiceMonitor,
	}}
	for _, k := range kinds.All() {
		w.served = append(w.served, k.GroupVersionKind)
	}
	w.documents(strings.Replace(managerDeployment, "ALL", strings.Join(kinds.Names(), ","), 1))
	s, certificate := shippedManifests(t), issueCertificate(t, noon.Add(-time.Hour))
	w.add("v1", "Secret", certificate)
	bundle := certificate.Data[corev1.ServiceAccountRootCAKey]
	for name, crd := range s.crds {
		live := crd.DeepCopy()
		live.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
		if name == convertedCRD {
			live.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{CABundle: bundle, Service: &apiextensionsv1.ServiceReference{Namespace: "opendatahub", Name: webhookService}},
			}}
		}
		w.add("apiextensions.k8s.io/v1", "CustomResourceDefinition", live)
	}
	for _, name := range slices.Sorted(maps.Keys(s.configurations)) {
		kind, configuration, _ := strings.Cut(name, " ")
		w.add("admissionregistration.k8s.io/v1", kind, &admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: configuration},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: "w", ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: bundle, Service: &admissionregistrationv1.ServiceReference{Namespace: "opendatahub", Name: webhookService},
			}}},
		})
	}
	clusterRole, role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "opendatahub"}}
	for _, shipped := range s.roles {
		if shipped.namespaced {
			role.Rules = append(role.Rules, shipped.rules...)
		} else {
			clusterRole.Rules = append(clusterRole.Rules, shipped.rules...)
		}
	}
	w.add("rbac.authorization.k8s.io/v1", "ClusterRole", clusterRole)
	w.add("rbac.authorization.k8s.io/v1", "Role", role)
	return w
}

// failedFindings returns the findings of one check that are not ok.
func failedFindings(found []Finding, check string) []Finding {
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return f.Check != check || f.Result == OK })
}
