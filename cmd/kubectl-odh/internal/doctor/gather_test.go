package doctor

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/cli"
)

// ofTheCluster are the kinds without a namespace.
var ofTheCluster = []string{
	"Namespace", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "MLflow", "Ingress",
}

// fakeCluster is a cluster with these objects that serves the usual kinds.
func fakeCluster(t *testing.T, documents string) (*cli.Cluster, *fakedynamic.FakeDynamicClient) {
	t.Helper()
	lists := []*metav1.APIResourceList{}
	listKinds := map[schema.GroupVersionResource]string{}
	for version, kinds := range map[string][]string{
		"v1": {"Namespace", "Service", "Secret", "ConfigMap"}, "apps/v1": {"Deployment"}, "coordination.k8s.io/v1": {"Lease"},
		"rbac.authorization.k8s.io/v1": {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, "discovery.k8s.io/v1": {"EndpointSlice"},
		"apiextensions.k8s.io/v1":         {"CustomResourceDefinition"},
		"admissionregistration.k8s.io/v1": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
		"serving.kserve.io/v1alpha1":      {"Predictor", "ServingRuntime"}, "mlflow.opendatahub.io/v1": {"MLflow"}, "config.openshift.io/v1": {"Ingress"},
	} {
		list := &metav1.APIResourceList{GroupVersion: version}
		gv, _ := schema.ParseGroupVersion(version)
		for _, kind := range kinds {
			resource := strings.ToLower(kind) + "s"
			if strings.HasSuffix(kind, "s") {
				resource = strings.ToLower(kind) + "es"
			}
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: resource, Kind: kind, Namespaced: !slices.Contains(ofTheCluster, kind), Verbs: []string{"get", "list"}})
			listKinds[gv.WithResource(resource)] = kind + "List"
		}
		lists = append(lists, list)
	}
	var objects []runtime.Object
	scheme := fakemetadata.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var heads []runtime.Object
	for text := range strings.SplitSeq(documents, "---") {
		u := &unstructured.Unstructured{}
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = u.UnmarshalJSON(raw)
		}
		if err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		objects = append(objects, u)
		head := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: u.GetAPIVersion(), Kind: u.GetKind()}}
		head.SetName(u.GetName())
		head.SetNamespace(u.GetNamespace())
		heads = append(heads, head)
	}
	dynamic := fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), listKinds, objects...)
	dynamic.PrependReactor("list", "*", func(a clienttesting.Action) (bool, runtime.Object, error) { // the fake knows no field selectors
		list, ok := a.(clienttesting.ListActionImpl)
		if !ok || list.ListRestrictions.Fields == nil || list.ListRestrictions.Fields.Empty() {
			return false, nil, nil
		}
		name, _ := list.ListRestrictions.Fields.RequiresExactMatch("metadata.name")
		all, err := dynamic.Tracker().List(list.Resource, list.Kind, list.Namespace)
		if found, is := all.(*unstructured.UnstructuredList); is {
			found.Items = slices.DeleteFunc(found.Items, func(u unstructured.Unstructured) bool { return u.GetName() != name })
		}
		return true, all, err
	})
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: lists}, FakedServerVersion: &version.Info{GitVersion: "v1.34.1"}}
	return &cli.Cluster{Namespace: "opendatahub", Discovery: discovery, Dynamic: dynamic, Metadata: fakemetadata.NewSimpleMetadataClient(scheme, heads...)}, dynamic
}

func gathered(t *testing.T, cluster *cli.Cluster) *Facts {
	t.Helper()
	o := &cli.Options{
		Clock: clocktesting.NewFakePassiveClock(noon), Version: "1.2.3", Connect: func() (*cli.Cluster, error) { return cluster, nil },
	}
	f, err := gather(t.Context(), o, ships(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

const installation = `
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: opendatahub, name: odh-platform-operator-controller-manager}, spec: {template: {spec: {
  serviceAccountName: sa, containers: [{name: manager, image: "x:v1.2.3", env: [{name: ENABLE_MODELMESH, value: "true"}, {name: POD_NAMESPACE, value: opendatahub}]}]}}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {namespace: old, name: modelmesh-controller}, spec: {replicas: 0}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: old, name: modelmesh-controller-leader-lock}, spec: {holderIdentity: pod_1, renewTime: "2026-05-04T11:59:50.000000Z", leaseDurationSeconds: 15}}
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {namespace: old, name: catalog.opendatahub.io}, spec: {holderIdentity: pod_1, renewTime: "2026-05-04T10:59:50.000000Z", leaseDurationSeconds: 15}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a}, subjects: [{kind: ServiceAccount, name: sa, namespace: opendatahub}], roleRef: {kind: ClusterRole, name: a}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, subjects: [{kind: User, name: other}], roleRef: {kind: ClusterRole, name: b}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}, rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a, namespace: opendatahub}, subjects: [{kind: ServiceAccount, name: sa}], roleRef: {kind: Role, name: a}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: a, namespace: opendatahub}, rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]}
---
{apiVersion: v1, kind: Secret, metadata: {namespace: opendatahub, name: odh-platform-operator-webhook-cert}, data: {tls.crt: YQ==, ca.crt: Yg==, tls.key: Yw==, ca.key: ZA==}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: theirs}, webhooks: [{name: w, rules: [{apiGroups: [mlflow.opendatahub.io], resources: ["*"]}],
  clientConfig: {service: {namespace: opendatahub, name: hooks}}}]}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: pods}, webhooks: [{name: w, rules: [{apiGroups: [""], resources: [pods]}], clientConfig: {url: "https://x"}}]}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: appwrapper-mutating-webhook-configuration}, webhooks: [{name: w, failurePolicy: Ignore, clientConfig: {url: "https://x"}}]}
---
{apiVersion: v1, kind: Service, metadata: {namespace: opendatahub, name: hooks}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {namespace: opendatahub, name: hooks-1, labels: {kubernetes.io/service-name: hooks}}, endpoints: [{addresses: [10.0.0.1], conditions: {ready: true}}, {addresses: [10.0.0.2], conditions: {ready: false}}]}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: mlflows.mlflow.opendatahub.io}, spec: {group: mlflow.opendatahub.io}}
`

func TestGather(t *testing.T) {
	cluster, _ := fakeCluster(t, installation)
	f := gathered(t, cluster)
	if f.Server != "v1.34.1" || f.Plugin != "1.2.3" || f.namespace() != "opendatahub" || !f.enabled("modelmesh") {
		t.Errorf("%q %q %q %+v", f.Server, f.Plugin, f.namespace(), f.Manager.Settings.Problem)
	}
	if len(f.Originals) != 1 || !f.Originals[0].Present || f.Originals[0].Replicas != 0 || f.Originals[0].Holder != "pod_1" {
		t.Errorf("former operators: %+v", f.Originals)
	}
	if r := f.Granted; len(r.Everywhere) != 1 || r.Everywhere[0].Resources[0] != "pods" || len(r.Inside) != 1 {
		t.Errorf("rights: %+v", r)
	}
	if c := f.Certificate; c == nil || string(c.Data[corev1.TLSCertKey]) != "a" || len(c.Data) != 2 {
		t.Errorf("the certificate, and no key: %+v", c)
	}
	if len(f.Webhooks) != 2 || len(f.Services) != 1 {
		t.Fatalf("webhooks %+v, Services %v", f.Webhooks, f.Services)
	}
	for key, ready := range f.Services {
		if key.Name != "hooks" || ready != 1 {
			t.Errorf("%s: %d", key, ready)
		}
	}
	if f := gathered(t, external(t)); len(f.Services) != 1 || slices.Collect(maps.Values(f.Services))[0] != -1 {
		t.Errorf("the pods behind a host name are not known: %v", f.Services)
	}
	if f.CRDs["mlflows.mlflow.opendatahub.io"] == nil || len(f.CRDs) != len(ships(t).CRDs) || f.CRDs["mlflowconfigs.mlflow.kubeflow.org"] != nil {
		t.Errorf("CRDs %v", f.CRDs)
	}
	if len(slices.Concat(slices.Collect(maps.Values(f.Unread))...)) != 0 {
		t.Errorf("nothing was refused: %+v", f.Unread)
	}
}

// external is the installation with its webhooks on another host.
func external(t *testing.T) *cli.Cluster {
	t.Helper()
	cluster, _ := fakeCluster(t, strings.Replace(installation, "{apiVersion: v1, kind: Service, metadata: {namespace: opendatahub, name: hooks}}",
		"{apiVersion: v1, kind: Service, metadata: {namespace: opendatahub, name: hooks}, spec: {type: ExternalName, externalName: localhost}}", 1))
	return cluster
}

// What may not be read is unknown, with the right that is missing; the rest is judged all the same.
func TestForbidden(t *testing.T) {
	cluster, dynamic := fakeCluster(t, installation)
	refused := map[string]string{"customresourcedefinitions": "get", "clusterrolebindings": "list", "secrets": "get", "leases": "list", "mlflows": "list"}
	dynamic.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.GetResource()
		if refused[r.Resource] == a.GetVerb() {
			return true, nil, apierrors.NewForbidden(r.GroupResource(), "", errors.New("no"))
		}
		return false, nil, nil
	})
	f := gathered(t, cluster)
	found := judge(f, ships(t))
	for check, right := range map[string]string{
		"crds":        "get customresourcedefinitions.apiextensions.k8s.io",
		"rights":      "list clusterrolebindings.rbac.authorization.k8s.io",
		"certificate": "get secrets in namespace opendatahub",
		"originals":   "list leases.coordination.k8s.io in all namespaces",
		"references":  "list mlflows.mlflow.opendatahub.io",
	} {
		unknown := of(found, check)
		if !slices.ContainsFunc(unknown, func(x Finding) bool {
			return x.Result == Unknown && strings.HasSuffix(x.Fix, "the permission to "+right)
		}) {
			t.Errorf("%s does not ask for the permission to %s: %+v", check, right, unknown)
		}
	}
	if len(f.Originals) != 1 {
		t.Errorf("%+v", f.Originals)
	}
}

// Who may not look for the manager in all namespaces may name the one where it is.
func TestManagerThatMayNotBeLookedFor(t *testing.T) {
	cluster, dynamic := fakeCluster(t, strings.Replace(installation, "namespace: opendatahub, name: odh-platform-operator-controller-manager", "namespace: elsewhere, name: odh-platform-operator-controller-manager", 1))
	dynamic.PrependReactor("*", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.GetResource()
		if (r.Resource == "deployments" || r.Resource == "leases") && a.GetNamespace() == "" {
			return true, nil, apierrors.NewForbidden(r.GroupResource(), "", errors.New("no"))
		}
		return false, nil, nil
	})
	found := of(judge(gathered(t, cluster), ships(t)), "manager")
	if len(found) != 2 {
		t.Fatalf("%+v", found)
	}
	for i, resource := range []string{"deployments.apps", "leases.coordination.k8s.io"} {
		x := found[i]
		if x.Result != Unknown || x.Subject != resource || x.Found != "may not be read" ||
			x.Fix != "ask an administrator for the permission to list "+resource+" in all namespaces, or name the manager's namespace with --manager-namespace" {
			t.Errorf("%+v", x)
		}
	}
}

// The message of an API server that fails is shown.
func TestTrouble(t *testing.T) {
	cluster, dynamic := fakeCluster(t, installation)
	dynamic.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("etcd is gone\nand more")
	})
	cluster.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{GroupVersion: "apiextensions.k8s.io/v1",
		APIResources: []metav1.APIResource{{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}}}}}, FakedServerVersion: &version.Info{GitVersion: "v1.34.1"}}
	found := of(judge(gathered(t, cluster), ships(t)), "crds")
	if len(found) == 0 || found[0].Result != Unknown || !strings.HasSuffix(found[0].Found, "etcd is gone") {
		t.Errorf("%+v", found)
	}
}
