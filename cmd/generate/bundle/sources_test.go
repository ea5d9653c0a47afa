package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// installation contains the manifests of a small operator.
const installation = `
apiVersion: v1
kind: Namespace
metadata: {name: here}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: manager, namespace: here}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org}
spec:
  group: example.org
  names: {kind: Thing, plural: things, singular: thing, listKind: ThingList}
  scope: Namespaced
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {name: hooks, namespace: here, path: /convert}}
  versions:
    - name: v1alpha1
      served: true
      storage: false
      deprecated: true
      schema: {openAPIV3Schema: {type: object}}
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: "Thing is\n one of ours."
          properties:
            spec:
              type: object
              properties:
                replicas: {type: integer, description: "replicas is how many."}
                backendStoreUri: {type: string, description: "where it is."}
                inner: {type: object, description: "more.", properties: {enable_it: {type: boolean, description: "a switch."}}}
            status:
              type: object
              properties: {url: {type: string, description: "its address."}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bells.example.org}
spec:
  group: example.org
  names: {kind: Bell, plural: bells, singular: bell, listKind: BellList}
  scope: Cluster
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, description: Bell rings., properties: {spec: {type: object}}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: the.manager, namespace: here, labels: {app: manager}}
spec:
  selector: {matchLabels: {app: manager}}
  template:
    metadata: {labels: {app: manager}}
    spec:
      serviceAccountName: manager
      containers:
        - name: manager
          image: registry.example.org/older:1
          ports: [{name: health, containerPort: 8081}, {name: webhook, containerPort: 9443}]
          env:
            - {name: POD_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            - {name: THING_IMAGE, value: "registry.example.org/older-thing:1"}
            - {name: NOTHING, value: ""}
            - {name: ENABLE_THING, value: "true"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: manager}
rules:
  - {apiGroups: [example.org], resources: [things], verbs: [get, list, watch]}
  - {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], resourceNames: [ours], verbs: [get, list, patch, watch]}
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], resourceNames: [things.example.org], verbs: [get, patch]}
  - {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions/status], resourceNames: [things.example.org], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: manager}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: manager}
subjects: [{kind: ServiceAccount, name: manager, namespace: here}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: scraper, namespace: here}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: for-people, labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}}
rules: [{apiGroups: [example.org], resources: [things], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lease, namespace: here}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lease, namespace: here}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lease}
subjects: [{kind: ServiceAccount, name: manager, namespace: here}]
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: here}
spec: {ports: [{port: 8443}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: metrics, namespace: here}
spec: {}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: first-of-all}
webhooks:
  - name: mthing.example.org
    admissionReviewVersions: [v1]
    clientConfig: {service: {name: hooks, namespace: here, path: /mutate}}
    failurePolicy: Fail
    reinvocationPolicy: IfNeeded
    sideEffects: None
    rules: [{apiGroups: [example.org], apiVersions: [v1], operations: [CREATE], resources: [things]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: things}
webhooks:
  - name: vthing.example.org
    admissionReviewVersions: [v1]
    clientConfig: {service: {name: hooks, namespace: here, path: /validate}}
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: 5
    rules: [{apiGroups: [example.org], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [things]}]
    matchConditions: [{name: alive, expression: "true"}]
`

// objects parses several documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatalf("unexpected error: %v\n%s", err, document)
		}
		out = append(out, object)
	}
	return out
}

// sourcesOf returns the sources of the installation after replacements of text; each old text must occur.
func sourcesOf(t *testing.T, replace ...string) *sources {
	t.Helper()
	text := installation
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("the installation does not contain %q", replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	s, err := newSources(objects(t, text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestNewSources(t *testing.T) {
	s := sourcesOf(t)
	var names []string
	for _, d := range s.crds {
		names = append(names, d.crd.Name)
	}
	if !slices.Equal(names, []string{"bells.example.org", "things.example.org"}) {
		t.Errorf("CRDs %q, want %q", names, []string{"bells.example.org", "things.example.org"})
	}
	if s.deployment.Name != "the.manager" || len(s.roles) != 4 || len(s.bindings) != 3 {
		t.Errorf("got %+v, want the manager's Deployment, 4 roles and 3 bindings", s)
	}
	var others []string
	for _, o := range s.others {
		others = append(others, o.GetKind())
	}
	if !slices.Equal(others, []string{"Service", "PodDisruptionBudget"}) || len(s.configurations) != 2 || s.configurations[0].Kind != "MutatingWebhookConfiguration" {
		t.Errorf("got other kinds %q and %d webhook configurations, want a Service, a PodDisruptionBudget and 2", others, len(s.configurations))
	}
	var roles []string
	for ref := range s.roles {
		roles = append(roles, ref.Kind+" "+ref.Name)
	}
	if slices.Sort(roles); !slices.Equal(roles, []string{"ClusterRole for-people", "ClusterRole manager", "ClusterRole reader", "Role lease"}) {
		t.Errorf("roles %q, want %q", roles, []string{"ClusterRole for-people", "ClusterRole manager", "ClusterRole reader", "Role lease"})
	}
}

func TestNewSourcesRejectsInvalidKustomizations(t *testing.T) {
	all := objects(t, installation)
	second := all[4].DeepCopy()
	second.SetName("other")
	for name, c := range map[string]struct {
		objects []*unstructured.Unstructured
		want    string
	}{
		"no objects":                         {nil, "no Deployment of the manager"},
		"two Deployments":                    {append(slices.Clone(all), second), "Deployment other: there is a second Deployment, the.manager"},
		"another kind":                       {append(slices.Clone(all), objects(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d}}")...), "DaemonSet d: remove the object from the kustomization"},
		"kind that not every cluster serves": {append(slices.Clone(all), objects(t, "{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: m}}")...), "ServiceMonitor m: remove the object from the kustomization"},
		"unknown field": {append(slices.Clone(all), objects(t, "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r}, rule: []}")...),
			`Role r: decoding: strict decoding error: unknown field "rule"`},
	} {
		if _, err := newSources(c.objects); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", name, err, c.want)
		}
	}
}

func TestPermissions(t *testing.T) {
	namespaced, cluster, err := sourcesOf(t).permissions()
	if err != nil {
		t.Fatal(err)
	}
	if len(namespaced) != 1 || namespaced[0].ServiceAccountName != "manager" || namespaced[0].Rules[0].Resources[0] != "leases" {
		t.Errorf("got %+v, want one namespaced permission of the manager, for leases", namespaced)
	}
	if len(cluster) != 2 || cluster[0].ServiceAccountName != "manager" || cluster[1].ServiceAccountName != "scraper" {
		t.Fatalf("unexpected cluster permissions: %+v", cluster)
	}
	// OLM writes webhook configurations and the conversion of the CRD. The manager still reads Things, lists CRDs, and updates
	// status.storedVersions of that CRD.
	var remaining []string
	for _, r := range cluster[0].Rules {
		remaining = append(remaining, strings.Join(r.Resources, " ")+": "+strings.Join(r.Verbs, " "))
	}
	if difference := cmp.Diff([]string{"things: get list watch", "customresourcedefinitions: list watch", "customresourcedefinitions/status: patch"}, remaining); difference != "" {
		t.Error(difference)
	}
}

func TestPermissionsRejectsBindingsThatOLMCannotGrant(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"kind: Role, name: lease", "kind: Role, name: none", "RoleBinding lease: there is no Role none"},
		{"kind: ClusterRole, name: reader", "kind: ClusterRole, name: none", "ClusterRoleBinding reader: there is no ClusterRole none"},
		{"kind: RoleBinding\nmetadata: {name: lease, namespace: here}", "kind: RoleBinding\nmetadata: {name: lease, namespace: there}", "RoleBinding lease is in namespace there"},
		{"{kind: ServiceAccount, name: scraper, namespace: here}", "{kind: Group, name: people}", "ClusterRoleBinding reader: bind it to one ServiceAccount"},
		{"{kind: ServiceAccount, name: scraper, namespace: here}", "{kind: ServiceAccount, name: scraper, namespace: there}", "in the namespace of the manager"},
		{"[{kind: ServiceAccount, name: scraper, namespace: here}]", "[]", "bind it to one ServiceAccount"},
	} {
		if _, _, err := sourcesOf(t, c.old, c.new).permissions(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", c.new, err, c.want)
		}
	}
}

// A role without remaining rules is not granted, and a role that may patch other CRDs keeps its rule.
func TestPermissionsOmitsRolesWithoutRules(t *testing.T) {
	s := sourcesOf(t, "resourceNames: [things.example.org], verbs: [get, patch]", "resourceNames: [others.example.org], verbs: [get, patch]",
		"rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [create]}]",
		"rules: [{apiGroups: [admissionregistration.k8s.io], resources: [validatingwebhookconfigurations], verbs: [get]}]")
	namespaced, cluster, err := s.permissions()
	if err != nil || len(namespaced) != 0 {
		t.Errorf("got namespaced permissions %v, error %v, want none", namespaced, err)
	}
	if rule := cluster[0].Rules[2]; !slices.Equal(rule.ResourceNames, []string{"others.example.org"}) {
		t.Errorf("unexpected rules: %+v", cluster[0].Rules)
	}
}

// Also under OLM, the manager may clean up legacy webhooks and detect the KubeRay of the platform.
func TestPermissionsKeepsWebhooksOfOthers(t *testing.T) {
	_, cluster, err := sourcesOf(t, "resourceNames: [ours]", "resourceNames: [ours, codeflare-operator-mutating-webhook-configuration, kuberay-mutating-webhook-configuration]").permissions()
	if err != nil {
		t.Fatal(err)
	}
	rule := cluster[0].Rules[1]
	if !slices.Equal(rule.ResourceNames, []string{"codeflare-operator-mutating-webhook-configuration", "kuberay-mutating-webhook-configuration"}) || !slices.Equal(rule.Verbs, []string{"get", "list", "patch", "watch"}) {
		t.Errorf("unexpected rules: %+v", cluster[0].Rules)
	}
}

// ClusterRoles for others are shipped, even if another account is bound to them; OLM creates those of the manager.
func TestRolesForOthersOmitsRolesOfTheManager(t *testing.T) {
	var names []string
	for _, role := range sourcesOf(t).rolesForOthers() {
		names = append(names, role.GetName())
	}
	if !slices.Equal(names, []string{"for-people", "reader"}) {
		t.Errorf("names %q, want %q", names, []string{"for-people", "reader"})
	}
}
