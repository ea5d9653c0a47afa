package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/render"
	"github.com/odh-platform/odh-platform-operator/pkg/nested"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// Needed is a Secret or a ConfigMap that a resource names.
type Needed struct {
	// By is the resource, such as "MLflow mlflow".
	By string
	// Namespace of the object; "" where it is not known.
	Namespace string
	Reference
	// Found tells whether the object exists, Missing which keys it lacks, Hidden that it could not be read.
	Found, Hidden bool
	Missing       []string
}

// naming are the kinds whose references are checked.
var naming = []string{"MLflow", "MLflowConfig", "ModelRegistry", "Catalog", "ServingRuntime"}

// references reads what resources of all namespaces name. What MLflow names is in the namespace of its server. Of Secrets no more than
// the names of their keys is kept.
func (g *gatherer) references(ctx context.Context) {
	home := ""
	if s := g.facts.Manager.Settings; s.Known {
		home = s.Config.Namespace
	}
	var needed []Needed
	for _, kind := range kinds.All() {
		if !slices.Contains(naming, kind.Kind) {
			continue
		}
		resources, _ := g.List(ctx, g.Kind(kind.GroupKind().String()), "", metav1.ListOptions{})
		for _, u := range kind.Of(resources) {
			for _, ref := range referencesOf(&u) {
				needed = append(needed, Needed{By: nameOf(&u), Namespace: cmp.Or(u.GetNamespace(), home), Reference: ref})
			}
		}
	}
	g.facts.Needed = fetch.Map(needed, func(n Needed) Needed { return g.look(ctx, n) })
	slices.SortStableFunc(g.facts.Needed, func(a, b Needed) int { return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Name, b.Name)) })
}

// nameOf is the kind, namespace and name of a resource.
func nameOf(u *unstructured.Unstructured) string {
	return u.GetKind() + " " + strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
}

// look reads whether an object that is needed exists.
func (g *gatherer) look(ctx context.Context, n Needed) Needed {
	if n.Namespace == "" {
		n.Hidden = true
		return n
	}
	u, err := g.Get(ctx, g.Kind(n.Kind), n.Namespace, n.Name)
	n.Hidden, n.Found = err != nil, u != nil
	if u == nil {
		return n
	}
	for _, key := range n.Keys { // Secrets and ConfigMaps alike; binaryData is for files
		if nested.At(u.Object, "data", key) == nil && nested.At(u.Object, "binaryData", key) == nil {
			n.Missing = append(n.Missing, key)
		}
	}
	return n
}

func checkReferences(f *Facts, _ Shipped) (problems []Finding, fine string) {
	for _, n := range f.Needed {
		word, kubectl, name := strings.ToLower(n.Kind), "kubectl -n "+n.Namespace, n.Kind+" "+n.Namespace+"/"+n.Name
		switch {
		case n.Namespace == "":
			problems = append(problems, Finding{Result: Unknown, Subject: n.By, Found: n.Kind + " " + n.Name + " could not be read: the namespace of the server is not known",
				Fix: "run this as a user who may read the Deployment of the manager; --manager-namespace names its namespace"})
		case n.Hidden: // reported once for all that the same permission would show
		case !n.Found:
			create := kubectl + " create " + strings.Replace(word, "secret", "secret generic", 1) + " " + n.Name
			for _, key := range n.Keys {
				create += " --from-literal=" + key + "=..."
			}
			problems = append(problems, Finding{Result: Fail, Subject: n.By, Found: name + " does not exist", Fix: create})
		case len(n.Missing) > 0:
			problems = append(problems, Finding{Result: Fail, Subject: n.By, Found: name + " has no key " + strings.Join(n.Missing, ", "),
				Fix: kubectl + " edit " + word + " " + n.Name + ", and add what is missing"})
		}
	}
	return problems, fmt.Sprintf("%d Secrets and ConfigMaps that resources name exist", len(f.Needed))
}

// Reference is a Secret or a ConfigMap that a resource names, with the keys that it needs; none where any will do.
type Reference struct {
	Kind, Name string
	Keys       []string
}

// impliedKeys are the keys that fields of a kind mean without naming them.
var impliedKeys = map[string][]string{
	"MLflowConfig artifactRootSecret": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_S3_BUCKET", "AWS_S3_ENDPOINT"},
	"Catalog secretName":              {"database-name", "database-user", "database-password"},
	"Catalog certificateSecretName":   {"tls.crt", "tls.key"},
}

// referencesOf returns what the spec of a resource names and is not optional, each object once. A field is recognized by its name,
// which all APIs of Kubernetes, and ours, keep to.
func referencesOf(u *unstructured.Unstructured) []Reference {
	found := map[string]Reference{}
	walk("", u.Object["spec"], func(field string, value any) {
		object, _ := value.(map[string]any)
		name, is := value.(string)
		if !is {
			name, _ = object["name"].(string)
		}
		kind := kindOf(field)
		if kind == "" || name == "" {
			return
		}
		ref := Reference{kind, name, append(found[kind+" "+name].Keys, impliedKeys[u.GetKind()+" "+field]...)}
		if key, _ := object["key"].(string); key != "" {
			ref.Keys = append(ref.Keys, key)
		}
		slices.Sort(ref.Keys)
		ref.Keys = slices.Compact(ref.Keys)
		found[kind+" "+name] = ref
	})
	var out []Reference
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out
}

// walk visits all fields of a value, and elements of lists as their field. What is optional is passed over.
func walk(field string, value any, visit func(field string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		if optional, _ := v["optional"].(bool); optional {
			return
		}
		visit(field, v)
		for name, below := range v {
			walk(name, below, visit)
		}
	case []any:
		for _, element := range v {
			walk(field, element, visit)
		}
	case string:
		visit(field, v)
	}
}

// kindOf is what a field names; "" for neither Secret nor ConfigMap.
func kindOf(field string) string {
	word := strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(field), "name"), "ref")
	for suffix, kind := range map[string]string{
		"secret": "Secret", "secrets": "Secret", "secretkey": "Secret", "urifrom": "Secret", "configmap": "ConfigMap", "configmapkey": "ConfigMap",
	} {
		if strings.HasSuffix(word, suffix) {
			return kind
		}
	}
	return ""
}

// runtimes judges the runtimes of ModelMesh in all namespaces. They have no status in which the manager could report that it refuses them.
func (g *gatherer) runtimes(ctx context.Context) {
	refusal := render.Refusals(ctx, g.Reader, g.facts.Manager)
	g.facts.Runtimes = map[string]string{}
	for _, kind := range kinds.All() {
		if !kinds.IsRuntime(kind.GroupVersionKind) {
			continue
		}
		found, _ := g.List(ctx, g.Kind(kind.GroupKind().String()), "", metav1.ListOptions{})
		for _, u := range kind.Of(found) {
			g.facts.Judged++
			problem := refusal(&u)
			if verdict := health.Of(&u); verdict.Reason == health.InvalidRuntime {
				problem = strings.TrimPrefix(verdict.Message, health.NoPods)
			}
			if problem != "" {
				g.facts.Runtimes[nameOf(&u)] = problem
			}
		}
	}
}

func checkRuntimes(f *Facts, _ Shipped) (problems []Finding, fine string) {
	if f.off("modelmesh") {
		return nil, ""
	}
	for _, name := range slices.Sorted(maps.Keys(f.Runtimes)) {
		problems = append(problems, Finding{Result: Fail, Subject: name, Found: health.NoPods + f.Runtimes[name], Fix: "correct its spec"})
	}
	return problems, fmt.Sprintf("ModelMesh can make pods of all runtimes that are for it: %d", f.Judged)
}
