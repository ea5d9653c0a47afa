package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// oldestServer is the first minor release of Kubernetes whose features the manifests need (CEL in CRDs and match conditions).
const oldestServer = "1.30"

func checkServer(f *Facts, _ Shipped) []Finding {
	var out []Finding
	switch server, err := version.ParseGeneric(f.Server); {
	case err != nil:
		out = append(out, Finding{Result: Unknown, Found: fmt.Sprintf("the API server says of its version %q", f.Server), Cure: "kubectl version"})
	case server.LessThan(version.MustParseGeneric(oldestServer)):
		out = append(out, Finding{Result: Fail, Subject: f.Server, Found: "older than " + oldestServer, Cure: "upgrade the cluster to " + oldestServer + " or newer"})
	default:
		out = append(out, fine(f.Server, "the API server answers"))
	}
	for _, group := range f.Served.Failed {
		out = append(out, Finding{Result: Warn, Subject: group, Found: "this aggregated API does not answer",
			Why: "deletion of namespaces and looking for kinds fail or take long", Cure: "kubectl get apiservices; mend or delete the one of " + group})
	}
	return out
}

// install is what brings a manager.
const install = "kubectl apply -k config/overlays/<your platform>, or make deploy-to-platform"

func checkManager(f *Facts, _ Shipped) []Finding {
	d := f.Manager.Deployment
	if d == nil {
		if out := f.unreadable(topicManager); len(out) > 0 {
			return out
		}
		return []Finding{{Result: Fail, Subject: "Deployment " + installed.DeploymentName, Found: "not there in any namespace that was looked at", Cure: install}}
	}
	subject := "Deployment " + d.Namespace + "/" + d.Name
	verdict := f.Manager.Health
	switch verdict.State {
	case health.Healthy:
		out := []Finding{fine(subject, "available, image "+f.Manager.Image)}
		switch l := f.Manager.Lease; {
		case l == nil && f.Manager.Settings.Known && !f.Manager.Settings.Config.LeaderElection.Enabled: // the only replica needs none
		case l == nil && f.Manager.Hidden:
			out = append(out, f.unreadable(topicManager)...)
		case !l.Held(f.Now):
			out = append(out, Finding{Result: Warn, Subject: "Lease", Found: "no replica leads",
				Why: "controllers run on the leader only", Cure: "kubectl -n " + d.Namespace + " logs deployment/" + d.Name})
		}
		return out
	case health.Idle:
		return []Finding{{Result: Fail, Subject: subject, Found: "scaled to zero", Cure: "kubectl -n " + d.Namespace + " scale deployment " + d.Name + " --replicas=1"}}
	case health.Progressing:
		return []Finding{{Result: Warn, Subject: subject, Found: "not available yet: " + verdict.Message, Cure: "kubectl -n " + d.Namespace + " get pods; wait, or look at their events"}}
	}
	return []Finding{{Result: Fail, Subject: subject, Found: "not available: " + cmp.Or(verdict.Message, verdict.Reason, string(verdict.State)),
		Cure: "kubectl -n " + d.Namespace + " describe pods -l control-plane=controller-manager; kubectl -n " + d.Namespace + " logs deployment/" + d.Name}}
}

func checkReplicas(f *Facts, _ Shipped) []Finding {
	if f.Manager.Deployment == nil {
		return nil
	}
	if len(f.Manager.Others) == 0 {
		return []Finding{fine("", "there is one manager")}
	}
	var out []Finding
	for _, namespace := range f.Manager.Others {
		out = append(out, Finding{Result: Fail, Subject: "Deployment " + namespace + "/" + installed.DeploymentName,
			Found: "a second manager, beside that of namespace " + f.namespace(),
			Cure:  "kubectl -n " + namespace + " delete deployment " + installed.DeploymentName + " (keep the CRDs)"})
	}
	return out
}

// checkVersion compares what can be compared: two releases.
func checkVersion(f *Facts, _ Shipped) []Finding {
	if f.Manager.Deployment == nil {
		return nil
	}
	here, there := release(f.Plugin), release(f.Manager.Version)
	switch {
	case here == nil || there == nil:
		return []Finding{fine("", fmt.Sprintf("this program is %q and the manager %q, which are no releases to compare", f.Plugin, f.Manager.Version))}
	case here.Major() == there.Major() && here.Minor() == there.Minor():
		return []Finding{fine("", fmt.Sprintf("this program and the manager are of release %d.%d", here.Major(), here.Minor()))}
	}
	return []Finding{{Result: Warn, Found: fmt.Sprintf("this program is %s, the manager %s", here, there), Cure: "use kubectl-odh of release " + there.String()}}
}

// release reads a version; nil for what is none, such as "latest".
func release(text string) *version.Version {
	text, _, _ = strings.Cut(text, "@")
	v, err := version.ParseSemantic(text)
	if err != nil {
		return nil
	}
	return v
}

func checkSettings(f *Facts, _ Shipped) []Finding {
	s := f.Manager.Settings
	switch {
	case f.Manager.Deployment == nil:
		return nil
	case !s.Known:
		return []Finding{{Result: Fail, Subject: "settings", Found: s.Problem, Cure: "correct the arguments, variables or ConfigMaps of the Deployment; docs/configuration.md has all settings"}}
	}
	var out []Finding
	for _, u := range s.Unread {
		resource := strings.ToLower(u.Kind) + "s " + u.Name
		finding := unread(Gap{What: u.String(), Right: "get " + resource + " in namespace " + u.Namespace})
		finding.Found = "could not be read, so the default counts here"
		if u.Kind == "Secret" {
			finding.Found, finding.Cure = "is not read, so the default counts here", "kubectl -n "+u.Namespace+" get secret "+u.Name+" -o yaml, if you may; this program reads no Secrets"
		}
		out = append(out, finding)
	}
	if err := s.Config.CheckComplete(); err != nil {
		out = append(out, Finding{Result: Fail, Subject: "settings", Found: err.Error(), Cure: "see the message"})
	}
	for _, notice := range s.Config.Notices {
		out = append(out, Finding{Result: Warn, Subject: "settings", Found: notice, Why: "it was said in the words of a former operator", Cure: "remove it"})
	}
	if len(s.Config.EnabledComponents()) == 0 {
		out = append(out, Finding{Result: Warn, Subject: "settings", Found: "no component is on", Why: "the manager does nothing", Cure: "set ENABLE_<COMPONENT>=true, or use an overlay"})
	}
	out = append(out, missingParameters(f, s.Config)...)
	if len(out) == 0 {
		out = append(out, fine("settings", "on: "+strings.Join(s.Config.EnabledComponents(), ", ")))
	}
	return out
}

// missingParameters are those that platforms fill in, and without which something is not published.
func missingParameters(f *Facts, c config.Config) []Finding {
	var out []Finding
	openshift := hasKind(f, "config.openshift.io", "Ingress")
	gateway := hasKind(f, "gateway.networking.k8s.io", "HTTPRoute")
	if c.Enabled("mlflow") && gateway && c.MLflow.ExternalURL == "" {
		out = append(out, Finding{Result: Warn, Subject: "mlflow-url", Found: "no external address of MLflow is configured",
			Why: "links and the console's menu lead nowhere, and browsers of that address are refused", Cure: "make deploy-to-platform, or set mlflow-url in params.env of the overlay"})
	}
	registries := c.Enabled("modelregistry") || c.Enabled("modelcatalog")
	if registries && openshift && gateway && c.ModelRegistry.Gateway.Domain == "" && !slices.Contains(c.EnabledComponents(), "platform") {
		out = append(out, Finding{Result: Warn, Subject: "GATEWAY_DOMAIN", Found: "empty",
			Why: "registries and the catalog are published by Routes, and not behind the Gateway", Cure: "set GATEWAY_DOMAIN in params.env, unless Routes are what you want"})
	}
	return out
}

func hasKind(f *Facts, group, kind string) bool {
	_, has := f.Served.Kind(group, kind)
	return has
}
