package doctor

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/config"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// oldestServer is the first minor release of Kubernetes whose features the manifests need (CEL in CRDs and match conditions).
const oldestServer = "1.30"

// redeploy is the command that installs the manager, its roles and its webhooks again. It names the image: without one, the command
// would deploy the default of the overlay.
func redeploy(f *Facts) string {
	return "make deploy OVERLAY=<overlay> IMG=" + imageOf(f)
}

func imageOf(f *Facts) string { return cmp.Or(f.Manager.Image, "<image of the manager>") }

func checkServer(f *Facts, _ Shipped) (problems []Finding, fine string) {
	switch server, err := version.ParseGeneric(f.Server); {
	case err != nil:
		problems = append(problems, Finding{Result: Unknown, Found: fmt.Sprintf("the API server reports version %q", f.Server), Fix: "kubectl version"})
	case server.LessThan(version.MustParseGeneric(oldestServer)):
		problems = append(problems, Finding{Result: Fail, Subject: f.Server, Found: "older than " + oldestServer, Fix: "upgrade the cluster to " + oldestServer + " or newer"})
	}
	for _, group := range f.Served.Failed {
		problems = append(problems, Finding{Result: Warn, Subject: group, Found: "this aggregated API does not answer",
			Why: "deletion of namespaces and discovery of kinds fail or take long", Fix: "kubectl get apiservices; repair or delete the one of " + group})
	}
	return problems, "the API server has version " + f.Server
}

func checkManager(f *Facts, _ Shipped) (problems []Finding, fine string) {
	d, verdict := f.Manager.Deployment, f.Manager.Health
	if d == nil {
		if len(f.Unread[manager]) > 0 {
			return nil, ""
		}
		return []Finding{{Result: Fail, Subject: "Deployment " + installed.DeploymentName, Found: "does not exist in any namespace that was searched",
			Fix: "install the manager: " + redeploy(f) + "; or select its namespace with --manager-namespace"}}, ""
	}
	kubectl := "kubectl -n " + d.Namespace
	problem := Finding{Result: Fail, Subject: "Deployment " + d.Namespace + "/" + d.Name}
	switch verdict.State {
	case health.Healthy:
		needsLeader := !f.Manager.Settings.Known || f.Manager.Settings.Config.LeaderElection.Enabled || f.Manager.Lease != nil
		if needsLeader && !f.Manager.Lease.Held(f.Now) && (f.Manager.Lease != nil || !f.Manager.Hidden) {
			problem.Result, problem.Found, problem.Why = Warn, "no replica holds the Lease", "controllers run on the leader only"
			problem.Fix = kubectl + " logs deployment/" + d.Name
		}
	case health.Idle:
		problem.Found, problem.Fix = "scaled to zero", kubectl+" scale deployment "+d.Name+" --replicas=1"
	case health.Progressing:
		problem.Result, problem.Found = Warn, "not available yet: "+verdict.Message
		problem.Fix = kubectl + " get pods; wait, or check their events"
	default:
		problem.Found = "not available: " + cmp.Or(verdict.Message, verdict.Reason, string(verdict.State))
		problem.Fix = kubectl + " describe pods -l control-plane=controller-manager; " + kubectl + " logs deployment/" + d.Name
	}
	if problem.Found != "" {
		problems = append(problems, problem)
	}
	for _, namespace := range f.Manager.Others {
		problems = append(problems, Finding{Result: Fail, Subject: "Deployment " + namespace + "/" + installed.DeploymentName,
			Found: "a second manager, beside that of namespace " + d.Namespace, Why: "two managers write the same objects, and undo what the other did",
			Fix: "kubectl -n " + namespace + " delete deployment " + installed.DeploymentName + " (keep the CRDs)"})
	}
	return problems, problem.Subject + " is available, image " + f.Manager.Image
}

// checkVersion compares what can be compared: two releases.
func checkVersion(f *Facts, _ Shipped) (problems []Finding, fine string) {
	if f.Manager.Deployment == nil {
		return nil, ""
	}
	here, there := release(f.Plugin), release(f.Manager.Version)
	switch {
	case here == nil || there == nil:
		return nil, fmt.Sprintf("not compared: this program is %q and the manager %q", f.Plugin, f.Manager.Version)
	case here.Major() == there.Major() && here.Minor() == there.Minor():
		return nil, fmt.Sprintf("this program and the manager are of release %d.%d", here.Major(), here.Minor())
	}
	return []Finding{{Result: Warn, Found: fmt.Sprintf("this program is %s, the manager %s", here, there), Fix: "use kubectl-odh of release " + there.String()}}, ""
}

// release parses a version; nil for what is none, such as "latest".
func release(text string) *version.Version {
	text, _, _ = strings.Cut(text, "@")
	v, err := version.ParseSemantic(text)
	if err != nil {
		return nil
	}
	return v
}

func checkSettings(f *Facts, _ Shipped) (problems []Finding, fine string) {
	s := f.Manager.Settings
	switch {
	case f.Manager.Deployment == nil:
		return nil, ""
	case !s.Known:
		return []Finding{{Result: Fail, Found: s.Problem, Fix: "correct the arguments, variables or ConfigMaps of the Deployment; docs/configuration.md has all settings"}}, ""
	}
	for _, u := range s.Unread {
		problems = append(problems, Finding{Result: Unknown, Subject: u.String(), Found: "could not be read, so the default is assumed",
			Fix: "kubectl -n " + u.Namespace + " get " + strings.ToLower(u.Kind) + " " + u.Name + " -o yaml, as a user who may; this program reads no Secrets for settings"})
	}
	if err := s.Config.CheckComplete(); err != nil {
		problems = append(problems, Finding{Result: Fail, Found: err.Error(), Fix: "see the message"})
	}
	for _, notice := range s.Config.Notices {
		problems = append(problems, Finding{Result: Warn, Found: notice, Why: "it is a setting of a former operator", Fix: "remove it"})
	}
	on := strings.Join(s.Config.EnabledComponents(), ", ")
	if on == "" {
		problems = append(problems, Finding{Result: Warn, Found: "no component is on", Why: "the manager does nothing", Fix: "set ENABLE_<COMPONENT>=true, or use an overlay"})
	}
	return append(problems, missingParameters(f, s.Config)...), "on: " + on
}

// missingParameters are those that platforms fill in, and without which something is not published.
func missingParameters(f *Facts, c config.Config) []Finding {
	var out []Finding
	openshift, gateway := f.hasKind("config.openshift.io", "Ingress"), f.hasKind("gateway.networking.k8s.io", "HTTPRoute")
	if c.Enabled("mlflow") && gateway && c.MLflow.ExternalURL == "" {
		out = append(out, Finding{Result: Warn, Subject: "mlflow-url", Found: "no external address of MLflow is configured",
			Why: "links and the menu of the console do not work, and the server rejects browsers at that address",
			Fix: "make deploy-to-platform PLATFORM=<odh or rhoai> IMG=" + imageOf(f) + ", or set mlflow-url in params.env of the overlay"})
	}
	registries := c.Enabled("modelregistry") || c.Enabled("modelcatalog")
	if registries && openshift && gateway && c.ModelRegistry.Gateway.Domain == "" && !c.Enabled("platform") {
		out = append(out, Finding{Result: Warn, Subject: "GATEWAY_DOMAIN", Found: "empty",
			Why: "registries and the catalog are published by Routes, and not behind the Gateway", Fix: "set GATEWAY_DOMAIN in params.env, unless Routes are what you want"})
	}
	return out
}
