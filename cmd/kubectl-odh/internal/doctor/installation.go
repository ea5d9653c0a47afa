package doctor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	"github.com/odh-platform/odh-platform-operator/cmd/internal/kinds"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/fetch"
	"github.com/odh-platform/odh-platform-operator/cmd/kubectl-odh/internal/installed"
	"github.com/odh-platform/odh-platform-operator/pkg/certs"
	"github.com/odh-platform/odh-platform-operator/pkg/names"
	"github.com/odh-platform/odh-platform-operator/pkg/status/health"
)

// minServerVersion is the first minor release of Kubernetes with the features that the manifests use (CEL in CRDs and match conditions).
const minServerVersion = "1.30"

// redeployCommand returns the command that reinstalls the manager, its roles and its webhooks. It contains the image, because the command
// otherwise uses the image of the overlay.
func (e *checkEnv) redeployCommand() string { return "make deploy OVERLAY=<overlay> IMG=" + e.image() }

func (e *checkEnv) image() string { return cmp.Or(e.manager.Image, "<image of the manager>") }

func checkServer(_ context.Context, e *checkEnv) (summary string) {
	switch server, err := version.ParseGeneric(e.server); {
	case err != nil:
		e.report(Unknown, "", fmt.Sprintf("the API server reports version %q", e.server), "", "kubectl version")
	case server.LessThan(version.MustParseGeneric(minServerVersion)):
		e.report(Fail, e.server, "older than "+minServerVersion, "", "upgrade the cluster to "+minServerVersion+" or newer")
	}
	for _, group := range e.Failed {
		e.report(Warn, group, "this aggregated API does not answer", "deletion of namespaces and discovery of kinds fail or take long",
			"kubectl get apiservices; repair or delete the APIService of "+group)
	}
	return "the API server has version " + e.server
}

func checkManager(_ context.Context, e *checkEnv) (summary string) {
	d, m := e.manager.Deployment, e.manager
	if d == nil {
		if len(e.Lines()) == 0 {
			e.report(Fail, "Deployment "+installed.DeploymentName, "does not exist in any namespace that was searched", "",
				"install the manager: "+e.redeployCommand()+"; or select its namespace with --manager-namespace")
		}
		return ""
	}
	kubectl, subject := "kubectl -n "+d.Namespace, "Deployment "+d.Namespace+"/"+d.Name
	needsLeader := m.Lease != nil || !m.MayExistUnseen && (!m.Known() || m.Settings.LeaderElection.Enabled)
	switch {
	case m.State == health.Healthy && needsLeader && !m.Leads:
		e.report(Warn, subject, "no replica holds the Lease", "controllers run on the leader only", kubectl+" logs deployment/"+d.Name)
	case m.State == health.Healthy:
	case ptr.Deref(d.Spec.Replicas, 1) == 0:
		e.report(Fail, subject, "scaled to zero", "", kubectl+" scale deployment "+d.Name+" --replicas=1")
	case m.State == health.Progressing:
		e.report(Warn, subject, "not available yet: "+m.Message, "", kubectl+" get pods; wait, or check their events")
	default:
		e.report(Fail, subject, "not available: "+cmp.Or(m.Message, m.Reason, string(m.State)), "",
			kubectl+" describe pods -l control-plane=controller-manager; "+kubectl+" logs deployment/"+d.Name)
	}
	for _, namespace := range m.Others {
		e.report(Fail, "Deployment "+namespace+"/"+installed.DeploymentName, "is a second manager; the first is in namespace "+d.Namespace,
			"the two managers overwrite each other's changes",
			"kubectl -n "+namespace+" delete deployment "+installed.DeploymentName+" (keep the CRDs)")
	}
	return subject + " is available, image " + m.Image
}

// checkVersion compares the minor releases of this program and of the manager.
func checkVersion(_ context.Context, e *checkEnv) (summary string) {
	image, _, _ := strings.Cut(e.manager.Version, "@")
	plugin, pluginErr := version.ParseSemantic(e.plugin)
	manager, managerErr := version.ParseSemantic(image)
	switch {
	case pluginErr != nil || managerErr != nil: // such as "latest"
		return fmt.Sprintf("not compared: this program is %q and the manager %q", e.plugin, e.manager.Version)
	case plugin.Major() != manager.Major() || plugin.Minor() != manager.Minor():
		e.report(Warn, "", fmt.Sprintf("this program is %s, the manager %s", plugin, manager), "", "use kubectl-odh of release "+manager.String())
	}
	return fmt.Sprintf("this program and the manager are of release %d.%d", plugin.Major(), plugin.Minor())
}

func checkSettings(_ context.Context, e *checkEnv) (summary string) {
	s := e.manager.Settings
	if !e.manager.Known() {
		e.report(Fail, "", e.manager.SettingsProblem, "", "correct the arguments, variables or ConfigMaps of the Deployment; docs/configuration.md has all settings")
		return ""
	}
	for _, u := range e.manager.Unread {
		e.report(Unknown, u, "could not be read, so the default is assumed", "", "run the command as a user who may read it; this program reads no Secrets for settings")
	}
	if err := s.CheckComplete(); err != nil {
		e.report(Fail, "", err.Error(), "", "change the settings of the Deployment as described above")
	}
	for _, warning := range s.Warnings {
		e.report(Warn, "", warning, "the manager starts, but the setting has no effect", "change the settings of the Deployment as described above")
	}
	enabled := strings.Join(s.EnabledComponents(), ", ")
	if enabled == "" {
		e.report(Warn, "", "no component is enabled", "the manager does nothing", "set ENABLE_<COMPONENT>=true, or use an overlay")
	}
	gateway := e.Kind("HTTPRoute.gateway.networking.k8s.io").Served()
	if e.manager.IsEnabled("mlflow") && gateway && s.MLflow.ExternalURL == "" {
		e.report(Warn, "mlflow-url", "no external address of MLflow is configured",
			"links and the menu of the console do not work, and the server rejects browsers at that address",
			"make deploy-to-platform PLATFORM=<odh or rhoai> IMG="+e.image()+", or set mlflow-url in params.env of the overlay")
	}
	published := (e.manager.IsEnabled("modelregistry") || e.manager.IsEnabled("modelcatalog")) && e.Kind("Ingress.config.openshift.io").Served() && gateway
	if published && s.ModelRegistry.Gateway.Domain == "" && !e.manager.IsEnabled("platform") {
		e.report(Warn, "GATEWAY_DOMAIN", "empty", "registries and the catalog are published by Routes, and not behind the Gateway",
			"set GATEWAY_DOMAIN in params.env, unless Routes are what you want")
	}
	return "enabled: " + enabled
}

type legacyOperator struct {
	// deployment and lease are the names of its Deployment and leader election Lease; "" if unknown.
	deployment, lease string
	// components are the components of this operator that replace it.
	components []string
}

var legacyOperators = []legacyOperator{
	{"mlflow-operator-controller-manager", "a5eb1b3b.opendatahub.io", []string{"mlflow", "platform"}},
	{"model-registry-operator-controller-manager", "85f368d1.opendatahub.io", []string{"modelregistry"}},
	{"catalog-controller-manager", "catalog.opendatahub.io", []string{"modelcatalog"}},
	{"aihub-controller-manager", "aihub-controller-manager", []string{"platform"}},
	{"modelmesh-controller", "modelmesh-controller-leader-lock", []string{"modelmesh"}},
	{"odh-model-controller", "", []string{"modelmesh"}},
	{"codeflare-operator-manager", "", []string{"raycluster", "appwrapper"}},
	{"appwrapper-controller-manager", "f134c674.codeflare.dev", []string{"appwrapper"}},
}

// checkLegacyOperators reports running legacy operators, unless their components are disabled, and held Leases without a Deployment.
func checkLegacyOperators(ctx context.Context, e *checkEnv) (summary string) {
	for _, o := range legacyOperators {
		if e.manager.Known() && !slices.ContainsFunc(o.components, e.manager.IsEnabled) {
			continue
		}
		components, holders := strings.Join(o.components, ", "), e.leaseHolders(ctx, o.lease)
		deployments, _ := e.List(ctx, e.Kind("Deployment.apps"), "", metav1.ListOptions{FieldSelector: "metadata.name=" + o.deployment})
		for i := range deployments {
			d := fetch.Decode[appsv1.Deployment](&deployments[i])
			if ptr.Deref(d.Spec.Replicas, 1) > 0 || holders[d.Namespace] != "" {
				e.report(Fail, "Deployment "+d.Namespace+"/"+d.Name, "the legacy operator of "+components+" is still running", "",
					"kubectl -n "+d.Namespace+" scale deployment "+d.Name+" --replicas=0; docs/migrate describes how to hand over")
			}
			delete(holders, d.Namespace)
		}
		for namespace, holder := range holders {
			e.report(Fail, "Lease "+namespace+"/"+o.lease,
				"held by "+holder+", a replica of the legacy operator of "+components, "", "stop the program that holds it")
		}
	}
	return "no legacy operator of an enabled component is running"
}

// leaseHolders returns the holder of each held Lease of this name by namespace.
func (e *checkEnv) leaseHolders(ctx context.Context, lease string) map[string]string {
	holders := map[string]string{}
	if lease == "" {
		return holders
	}
	leases, _ := e.List(ctx, e.Kind("Lease.coordination.k8s.io"), "", metav1.ListOptions{FieldSelector: "metadata.name=" + lease})
	for i := range leases {
		if l := installed.ReadLease(&leases[i]); l.IsHeld(e.now) {
			holders[l.Namespace] = l.Holder
		}
	}
	return holders
}

const (
	// certificateSecret holds the certificate that the manager issues for itself.
	certificateSecret = names.OperatorName + "-webhook-cert"
	// webhookService is the Service of the manager's webhooks.
	webhookService = names.OperatorName + "-webhook"
	// servingCertificates is the last part of the directory into which OLM mounts the certificate.
	servingCertificates = "k8s-webhook-server/serving-certs"
	// expiryWarning is the remaining lifetime at which a certificate is reported. The manager renews its certificate much earlier.
	expiryWarning = 7 * 24 * time.Hour
)

// checkWebhooks checks the shipped webhooks, and others for API groups whose kinds the operator reconciles. Both kinds of configurations
// share the fields that it reads.
func checkWebhooks(ctx context.Context, e *checkEnv) (summary string) {
	called, count := map[string]bool{}, 0
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		configurations, _ := e.List(ctx, e.Kind(kind+"."+admissionregistrationv1.GroupName), "", metav1.ListOptions{})
		for i := range configurations {
			c := fetch.Decode[admissionregistrationv1.ValidatingWebhookConfiguration](&configurations[i])
			for _, w := range c.Webhooks {
				if e.shipped.configurations[kind+" "+c.Name] == "" && !slices.ContainsFunc(w.Rules, hasManagedGroup) {
					continue
				}
				called[kind+" "+c.Name], count = true, count+1
				called[kind+" "+ptr.Deref(ptr.Deref(w.ClientConfig.Service, admissionregistrationv1.ServiceReference{}).Path, "")] = true
				e.checkWebhook(ctx, kind, c.Name, w)
			}
		}
	}
	if len(e.Lines()) > 0 {
		return ""
	}
	e.reportMissingConfigurations(called)
	return fmt.Sprintf("all %d webhooks are reachable", count)
}

// reportMissingConfigurations reports each missing configuration of an enabled component, unless other configurations call all of its paths.
func (e *checkEnv) reportMissingConfigurations(called map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(e.shipped.configurations)) {
		// OLM creates a configuration with another name and the same path for each webhook.
		missing := slices.ContainsFunc(e.shipped.calls[name], func(call string) bool { return !called[call] })
		if component := e.shipped.configurations[name]; e.manager.IsEnabled(component) && !called[name] && missing {
			e.report(Fail, name, "does not exist, and the component "+component+" is enabled", "objects are neither validated nor defaulted", e.redeployCommand())
		}
	}
}

// hasManagedGroup reports whether a rule includes an API group whose kinds the operator reconciles, such as ray.io.
func hasManagedGroup(r admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(kinds.All(), func(k kinds.Kind) bool { return slices.Contains(r.APIGroups, k.Group) })
}

func (e *checkEnv) checkWebhook(ctx context.Context, kind, configuration string, w admissionregistrationv1.ValidatingWebhook) {
	service := w.ClientConfig.Service
	if service == nil {
		return
	}
	f := Finding{Result: Fail, Subject: kind + " " + configuration + " (" + w.Name + ")", Fix: e.redeployCommand()}
	ignored := ptr.Deref(w.FailurePolicy, admissionregistrationv1.Fail) == admissionregistrationv1.Ignore
	if ignored {
		f.Result = Warn
	}
	isShipped := e.shipped.configurations[kind+" "+configuration] != ""
	if !isShipped {
		f.Fix = "kubectl delete " + strings.ToLower(kind) + " " + configuration + ", if the program that created it is no longer installed"
	}
	if e.checkClientConfig(ctx, service, w.ClientConfig.CABundle, f) && ignored && isShipped && e.isManagerService(service) {
		e.report(Warn, f.Subject, "has failurePolicy Ignore", "while the manager is unavailable, objects are neither validated nor defaulted", f.Fix)
	}
}

// checkClientConfig reports a webhook whose Service or ready pod is missing, or whose caBundle does not verify the certificate of the
// manager. It returns true if it found no problem. Objects that cannot be read are no problems, because they are gaps of the check.
func (e *checkEnv) checkClientConfig(ctx context.Context, service *admissionregistrationv1.ServiceReference, bundle []byte, f Finding) bool {
	name := service.Namespace + "/" + service.Name
	u, err := e.Get(ctx, e.Kind("Service"), service.Namespace, service.Name)
	switch untrusted := e.trustProblem(ctx, bundle); {
	case err != nil:
	case u == nil:
		f.Found = "calls Service " + name + ", which does not exist"
	case !e.hasReadyEndpoint(ctx, fetch.Decode[corev1.Service](u)):
		f.Found = "calls Service " + name + ", which has no ready pod"
		f.Fix = "kubectl -n " + service.Namespace + " get pods,endpointslices"
	case e.isManagerService(service) && untrusted != "":
		f.Found = untrusted
		f.Fix = "kubectl -n " + service.Namespace + " rollout restart deployment " + e.manager.Deployment.Name +
			": the manager writes the caBundle when it starts; if this does not help, see check rights"
	}
	if f.Found != "" {
		e.findings = append(e.findings, f)
	}
	return f.Found == ""
}

// hasReadyEndpoint reports whether a Service has a ready endpoint, is an ExternalName, or has EndpointSlices that cannot be read.
func (e *checkEnv) hasReadyEndpoint(ctx context.Context, service *corev1.Service) bool {
	options := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service.Name}
	found, err := e.List(ctx, e.Kind("EndpointSlice."+discoveryv1.GroupName), service.Namespace, options)
	for i := range found {
		for _, endpoint := range fetch.Decode[discoveryv1.EndpointSlice](&found[i]).Endpoints {
			if ptr.Deref(endpoint.Conditions.Ready, true) && len(endpoint.Addresses) > 0 {
				return true
			}
		}
	}
	return err != nil || service.Spec.ExternalName != ""
}

// isManagerService reports whether a reference is to the Service of the manager's webhooks.
func (e *checkEnv) isManagerService(s *admissionregistrationv1.ServiceReference) bool {
	return e.manager.Deployment != nil && s.Namespace == e.manager.Namespace && s.Name == webhookService
}

// trustProblem returns why a caBundle cannot verify the manager's own certificate, or "" if no reason is known.
func (e *checkEnv) trustProblem(ctx context.Context, bundle []byte) string {
	quiet := e.WithGaps(nil) // checkCertificate reports a gap
	secret := fetch.Decode[corev1.Secret](quiet.GetByName(ctx, "Secret", e.manager.Namespace, certificateSecret))
	switch {
	case len(bytes.TrimSpace(bundle)) == 0 && secret == nil:
		return "" // the platform may inject it, or the certificate may be publicly trusted
	case len(bytes.TrimSpace(bundle)) == 0:
		return "has no caBundle"
	case !x509.NewCertPool().AppendCertsFromPEM(bundle):
		return "its caBundle holds no certificate"
	case secret == nil:
		return ""
	}
	if leaf := certs.FirstCertificate(secret.Data[corev1.TLSCertKey]); leaf != nil && !signedBy(leaf, bundle, e.now) {
		return "its caBundle does not verify the certificate of the manager"
	}
	return ""
}

func signedBy(leaf *x509.Certificate, bundle []byte, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err == nil
}

// checkCertificate checks the certificate that the manager issues for itself. Its Secret does not exist if the platform mounts a
// certificate.
func checkCertificate(ctx context.Context, e *checkEnv) (summary string) {
	kubectl, subject := "kubectl -n "+e.manager.Namespace, "Secret "+e.manager.Namespace+"/"+certificateSecret
	secret := fetch.Decode[corev1.Secret](e.GetByName(ctx, "Secret", e.manager.Namespace, certificateSecret))
	switch {
	case secret == nil && e.certificateMounted():
		return "the certificate is mounted by the platform"
	case secret == nil:
		e.report(Warn, subject, "does not exist", "unless the platform mounts a certificate, webhooks cannot be called",
			kubectl+" logs deployment/"+e.manager.Deployment.Name+" | grep certs")
		return ""
	}
	result, found, until := Fail, "", ""
	leaf, host := certs.FirstCertificate(secret.Data[corev1.TLSCertKey]), webhookService+"."+e.manager.Namespace+".svc"
	if leaf != nil {
		until = leaf.NotAfter.UTC().Format(time.DateOnly)
	}
	switch {
	case leaf == nil:
		found = "holds no certificate"
	case e.now.After(leaf.NotAfter):
		found = "expired on " + until
	case leaf.VerifyHostname(host) != nil:
		found = "is not valid for " + host
	case !signedBy(leaf, secret.Data[corev1.ServiceAccountRootCAKey], e.now):
		found = "was not signed by the CA in the same Secret"
	case leaf.NotAfter.Sub(e.now) < expiryWarning:
		result, found = Warn, "expires on "+until+" and was not renewed"
	default:
		return subject + " is valid until " + until
	}
	e.report(result, subject, found, "", kubectl+" delete secret "+certificateSecret+"; the manager issues a new one within minutes")
	return ""
}

// certificateMounted reports whether the platform, such as OLM, mounts a certificate where the manager expects it.
func (e *checkEnv) certificateMounted() bool {
	s, known := e.manager.Settings.Webhook, e.manager.Known()
	return known && s.Mode == "mounted" ||
		slices.ContainsFunc(e.manager.Deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
				return strings.HasSuffix(path.Clean(m.MountPath), servingCertificates) || known && m.MountPath == s.CertDir
			})
		})
}
