package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// maxResources is how many resources are told of one by one.
const maxResources = 25

func checkResources(f *Facts, _ Shipped) []Finding {
	out := f.unreadable(topicResources)
	list := slices.Clone(f.Resources)
	slices.SortFunc(list, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Verdict.State.Rank(), b.Verdict.State.Rank()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	good, told := 0, 0
	for _, r := range list {
		finding, well := judgeResource(r)
		if well {
			good++
			continue
		}
		if told++; told <= maxResources {
			out = append(out, finding)
		}
	}
	if told > maxResources {
		out = append(out, Finding{Result: Warn, Found: fmt.Sprintf("%d more resources need attention", told-maxResources), Cure: "kubectl odh status --all"})
	}
	if told == 0 {
		out = append(out, fine("", fmt.Sprintf("%d resources are well", good)))
	}
	return out
}

// nameOf names an object.
func nameOf(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

// judgeResource turns a verdict into a finding.
func judgeResource(r Resource) (Finding, bool) {
	subject := nameOf(r.Kind, r.Namespace, r.Name)
	word := strings.ToLower(r.Kind)
	where := ""
	if r.Namespace != "" {
		where = " -n " + r.Namespace
	}
	v := r.Verdict
	said := strings.TrimSpace(v.Reason + " " + v.Message)
	if v.Paused {
		return Finding{Result: Warn, Subject: subject, Found: "paused", Why: "nothing of it is kept up until somebody ends the pause",
			Cure: "kubectl annotate " + word + " " + r.Name + where + " platform.opendatahub.io/paused-"}, false
	}
	cure := "kubectl odh tree " + word + "/" + r.Name + where
	if v.Reason != "" {
		cure += "; docs/troubleshooting.md has reason " + v.Reason
	}
	switch v.State {
	case health.Healthy, health.Idle:
		return Finding{}, true
	case health.Failed:
		return Finding{Result: Fail, Subject: subject, Found: cmp.Or(said, "failed"), Cure: cure}, false
	}
	return Finding{Result: Warn, Subject: subject, Found: cmp.Or(said, strings.ToLower(string(v.State))), Cure: cure}, false
}

func checkMesh(f *Facts, _ Shipped) []Finding {
	out := f.unreadable(topicMesh, topicMeshSecret)
	s := f.Manager.Settings
	if !s.Known {
		return out
	}
	on := s.Config.Enabled("modelmesh")
	if on && !f.EtcdSecret && len(f.gaps[topicMeshSecret]) == 0 {
		result := Fail
		if !f.meshIsUsed() {
			result = Warn // nobody waits for it yet
		}
		out = append(out, Finding{Result: result, Subject: "Secret " + s.Config.ModelMesh.Namespace + "/" + f.EtcdName, Found: "not there",
			Why: "runtimes do not start: they do not know where etcd is", Cure: "create it with key etcd_connection; docs/components/modelmesh.md has the form, and config/components/modelmesh-etcd brings an etcd"})
	}
	for _, n := range f.MeshNamespaces {
		out = append(out, judgeMesh(f, n)...)
	}
	if len(out) == 0 && on {
		out = append(out, fine("", fmt.Sprintf("etcd is named, and %d namespaces are served", len(f.MeshNamespaces))))
	}
	return out
}

// meshIsUsed tells whether anybody waits for ModelMesh.
func (f *Facts) meshIsUsed() bool {
	return slices.ContainsFunc(f.MeshNamespaces, func(n MeshNamespace) bool { return !n.Own || f.Connected[n.Name] > 0 })
}

func judgeMesh(f *Facts, n MeshNamespace) []Finding {
	subject, c := "Namespace "+n.Name, f.Manager.Settings.Config
	switch {
	case !c.Enabled("modelmesh"):
		return []Finding{{Result: Warn, Subject: subject, Found: "asks for ModelMesh (label modelmesh-enabled), which is off", Cure: "set ENABLE_MODELMESH=true, or take the label away"}}
	case c.ModelMesh.NamespaceScope && c.ModelMesh.Namespace != n.Name:
		return []Finding{{Result: Warn, Subject: subject, Found: "asks for ModelMesh, and the manager serves namespace " + c.ModelMesh.Namespace + " only (NAMESPACE_SCOPE)",
			Cure: "take NAMESPACE_SCOPE away, or use namespace " + c.ModelMesh.Namespace}}
	}
	var out []Finding
	if !n.Service && !n.Own && len(f.gaps[topicMesh]) == 0 {
		out = append(out, Finding{Result: Warn, Subject: subject, Found: "asks for ModelMesh and has no Service in front of runtimes yet",
			Cure: "kubectl -n " + f.namespace() + " logs deployment/odh-platform-operator-controller-manager | grep modelmesh"})
	}
	if models := f.Connected[n.Name]; models > 0 && !n.Storage && len(f.gaps[topicMeshSecret]) == 0 {
		out = append(out, Finding{Result: Fail, Subject: "Secret " + n.Name + "/" + f.StorageName, Found: fmt.Sprintf("not there, and %d models name an entry of it", models),
			Cure: "create the Secret with one JSON document for each entry; docs/components/modelmesh.md has the form"})
	}
	return out
}

func checkPlatform(f *Facts, _ Shipped) []Finding {
	if !hasKind(f, "config.openshift.io", "Ingress") {
		return []Finding{fine("", "not OpenShift")}
	}
	out := f.unreadable(topicOpenShift)
	if f.ServiceCA != nil && !*f.ServiceCA {
		out = append(out, Finding{Result: Fail, Subject: "Deployment openshift-service-ca/service-ca", Found: "not available", Why: "Services do not get their certificates, and proxies wait for them",
			Cure: "oc get clusteroperator service-ca"})
	}
	for _, kind := range [][2]string{{"route.openshift.io", "Route"}, {"security.openshift.io", "SecurityContextConstraints"}} {
		if !hasKind(f, kind[0], kind[1]) {
			out = append(out, Finding{Result: Warn, Subject: kind[1] + "." + kind[0], Found: "not served, though this is OpenShift",
				Why: "the cluster counts as half of one: Routes are not made, or pods get users that they cannot run as", Cure: "kubectl get apiservices"})
		}
	}
	if len(out) == 0 {
		out = append(out, fine("", "OpenShift, with Routes and certificates for Services"))
	}
	return out
}
