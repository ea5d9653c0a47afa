package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awv1beta2 "github.com/odh-platform/odh-platform-operator/apis/appwrapper/v1beta2"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

// kind is a kind whose objects are compared.
type kind struct {
	schema.GroupVersionKind

	namespaced bool
}

// ignoredResources lists resources that Kubernetes itself creates, or whose objects change without the manager.
var ignoredResources = []string{
	"events", "endpoints", "endpointslices", "pods", "replicasets", "leases", "controllerrevisions", "nodes", "csinodes", "componentstatuses",
	"persistentvolumes", "apiservices", "customresourcedefinitions", "namespaces", "podmetrics", "nodemetrics", "workloads", "ipaddresses", "servicecidrs",
}

// kindsOf returns the served kinds that support list and delete, except those of ignoredResources.
func kindsOf(config *rest.Config) ([]kind, error) {
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a discovery client: %w", err)
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("requesting the resources of the cluster: %w", err)
	}
	var kinds []kind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading the resources of the cluster: %w", err)
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "delete") && !slices.Contains(ignoredResources, r.Name) {
				kinds = append(kinds, kind{version.WithKind(r.Kind), r.Namespaced})
			}
		}
	}
	return kinds, nil
}

// id identifies an object in a snapshot.
type id struct {
	kind
	namespace, name string
}

func (i id) String() string { return strings.TrimSuffix(i.Kind+" "+i.namespace, " ") + "/" + i.name }

// snapshot holds the compared fields of objects, by object and field path.
type snapshot map[id]map[string]string

// managed reports whether an object has the label of the operator, or fields that a component applied.
func managed(o *unstructured.Unstructured) bool {
	return o.GetLabels()[names.OperatorLabel] == names.OperatorName || slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Operation == metav1.ManagedFieldsOperationApply && slices.Contains(fieldOwners, e.Manager)
	})
}

// fieldOwners lists the field managers of the components in the campaign.
var fieldOwners = []string{
	"mlflow-operator", "model-registry-operator", "model-catalog-operator", "modelmesh-controller", "codeflare-raycluster-controller", "appwrapper", "aihub",
}

// takeSnapshot returns a snapshot of the objects in the namespaces. In operatorNamespace and of cluster scope, it includes only managed
// objects and the cluster-scoped custom resources.
func (c *testCluster) takeSnapshot(ctx context.Context, kinds []kind, namespaces ...string) (snapshot, error) {
	objects, err := c.list(ctx, kinds, func(o *unstructured.Unstructured) bool {
		switch {
		case o.GetName() == "kube-root-ca.crt", o.GetKind() == "ServiceAccount" && o.GetName() == "default":
			return false
		case o.GetNamespace() == "" || o.GetNamespace() == operatorNamespace:
			return managed(o) || slices.Contains([]string{"MLflow", "MLflowOperator", "AIHub"}, o.GetKind())
		}
		return slices.Contains(namespaces, o.GetNamespace())
	})
	all := snapshot{}
	for key, o := range objects {
		all[key] = leaves(o)
	}
	return all, err
}

// list returns those objects of the kinds for which want returns true.
func (c *testCluster) list(ctx context.Context, kinds []kind, want func(*unstructured.Unstructured) bool) (map[id]*unstructured.Unstructured, error) {
	var mu sync.Mutex
	var failed error
	all := map[id]*unstructured.Unstructured{}
	workqueue.ParallelizeUntil(ctx, 4, len(kinds), func(i int) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kinds[i].GroupVersionKind)
		err := c.admin.List(ctx, list)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
			failed = fmt.Errorf("listing %s: %w", kinds[i].Kind, err)
		}
		for n := range list.Items {
			if o := &list.Items[n]; want(o) {
				all[id{kinds[i], o.GetNamespace(), o.GetName()}] = o
			}
		}
	})
	return all, failed
}

// kinds returns the kinds of the objects in a snapshot.
func (s snapshot) kinds() []kind {
	var all []kind
	for key := range s {
		if !slices.Contains(all, key.kind) {
			all = append(all, key.kind)
		}
	}
	return all
}

// ofFixture returns the objects of a fixture.
func (s snapshot) ofFixture(f *fixture) snapshot {
	part := snapshot{}
	for key, fields := range s {
		path := "/" + strings.ToLower(key.Kind) + "s/" + key.name
		if f.owns(request{namespace: key.namespace, path: path}) {
			part[key] = fields
		}
	}
	return part
}

// varying matches hexadecimal digests, UIDs and timestamps.
var varying = regexp.MustCompile(`[0-9a-f]{8}[0-9a-f-]*|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)

// renamed returns a snapshot with a placeholder for the namespace, for comparisons between namespaces.
func (s snapshot) renamed(namespace string) snapshot {
	swap := strings.NewReplacer(namespace, "{}")
	all := snapshot{}
	for key, fields := range s {
		key.namespace, key.name = swap.Replace(key.namespace), varying.ReplaceAllString(swap.Replace(key.name), "#")
		copied := map[string]string{}
		for path, value := range fields {
			copied[varying.ReplaceAllString(swap.Replace(path), "#")] = swap.Replace(value)
		}
		all[key] = copied
	}
	return all
}

// leaves returns the fields of an object without those that differ between runs, with the conditions of custom resources.
func leaves(o *unstructured.Unstructured) map[string]string {
	clean := framework.Normalize(o)
	if data, is := clean.Object["data"].(map[string]any); is && o.GetKind() == "Secret" {
		for name := range data {
			data[name] = "(secret)"
		}
	}
	for _, path := range [][]string{{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "volumeName"}, {"metadata", "annotations", "deployment.kubernetes.io/revision"},
		// The server of the catalog is replaced after its database, see controllers/modelcatalog.
		{"spec", "template", "metadata", "annotations", "catalog.opendatahub.io/database-pod"}} {
		unstructured.RemoveNestedField(clean.Object, path...)
	}
	all := map[string]string{}
	framework.Flatten("", clean.Object, all)
	for path, value := range all {
		all[path] = varying.ReplaceAllString(value, "#")
	}
	if strings.Contains(o.GroupVersionKind().Group, ".") {
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, c := range conditions {
			// An AppWrapper has this condition after a deletion only if the deletion took more than one reconcile.
			if fields, is := c.(map[string]any); is && (fields["type"] != awv1beta2.ConditionDeletingResources || fields["status"] != "False") {
				all[fmt.Sprintf("condition %v", fields["type"])] = fmt.Sprintf("%v %v", fields["status"], fields["reason"])
			}
		}
	}
	return all
}

// mask is a set of fields that differ between two undisturbed runs.
type mask map[string]bool

func maskKey(key id, path string) string { return key.String() + path }

// differences lists the differences between two snapshots, without masked fields.
func differences(want, have snapshot, ignore mask) []string {
	var all []string
	for key, fields := range want {
		found, is := have[key]
		if !is {
			if !ignore[maskKey(key, "")] {
				all = append(all, key.String()+" is missing")
			}
			continue
		}
		for path, value := range fields {
			if found[path] != value && !ignore[maskKey(key, path)] {
				all = append(all, fmt.Sprintf("%s%s is %q, not %q", key, path, found[path], value))
			}
		}
		for path, value := range found {
			if _, known := fields[path]; !known && !ignore[maskKey(key, path)] {
				all = append(all, fmt.Sprintf("%s%s is %q, not absent", key, path, value))
			}
		}
	}
	for key := range have {
		if _, known := want[key]; !known && !ignore[maskKey(key, "")] {
			all = append(all, key.String()+" is unexpected")
		}
	}
	slices.Sort(all)
	return all
}

// differingFields returns the fields in which two snapshots differ.
func differingFields(one, other snapshot) mask {
	all := mask{}
	note := func(key id, a, b map[string]string) {
		for path := range a {
			if a[path] != b[path] {
				all[maskKey(key, path)] = true
			}
		}
	}
	for key, fields := range one {
		if _, known := other[key]; !known {
			all[maskKey(key, "")] = true
		}
		note(key, fields, other[key])
	}
	for key, fields := range other {
		if _, known := one[key]; !known {
			all[maskKey(key, "")] = true
		}
		note(key, fields, one[key])
	}
	return all
}

// uids returns the UIDs of the objects of core kinds, by kind and name.
func (c *testCluster) uids(ctx context.Context, kinds []string, namespaces ...string) (map[string]string, error) {
	all := map[string]string{}
	for _, namespace := range namespaces {
		for _, name := range kinds {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: name})
			if err := c.admin.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return nil, fmt.Errorf("listing %s: %w", name, err)
			}
			for _, o := range list.Items {
				all[name+" "+o.Namespace+"/"+o.Name] = string(o.UID)
			}
		}
	}
	return all, nil
}

// encode returns a value as JSON, for messages.
func encode(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
