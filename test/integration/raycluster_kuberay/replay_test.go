package raycluster_kuberay_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/odh-platform/odh-platform-operator/pkg/capability"
	"github.com/odh-platform/odh-platform-operator/pkg/raycluster"
	"github.com/odh-platform/odh-platform-operator/test/framework"
)

const (
	trusted           = "odh.ray.io/secure-trusted-network"
	platformFinalizer = "ray.io/authentication-resources"
	gatewayGrant      = "kuberay-gateway-access"
	podWebhook        = "kuberay-replay-pods"
)

// platformKubeRay replays the changes that the KubeRay of Open Data Hub and OpenShift AI 3.x makes in addition to those of upstream, which
// runs in this suite: its webhook for RayClusters, the additions to pods, which it makes itself and this replay by a webhook, and its
// controllers for the migration from the CodeFlare operator, authentication, certificates and NetworkPolicies.
type platformKubeRay struct {
	// namespace is the only one whose clusters it reconciles.
	namespace string
	// openShift reports whether it found Routes when it started.
	openShift bool
	// remove uninstalls it. Finalizers and objects remain, as those of a program that is deleted.
	remove func(context.Context)
}

// installPlatformKubeRay starts the replay until remove is called, at the latest until the end of the spec.
func installPlatformKubeRay(ctx context.Context, namespace string, openShift bool) *platformKubeRay {
	GinkgoHelper()
	k := &platformKubeRay{namespace: namespace, openShift: openShift}
	mux := http.NewServeMux()
	handle := func(path string, change func(context.Context, []byte) (any, error)) {
		webhook := &admission.Webhook{Handler: admission.HandlerFunc(func(ctx context.Context, r admission.Request) admission.Response {
			changed, err := change(ctx, r.Object.Raw)
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			raw, err := json.Marshal(changed)
			if err != nil {
				return admission.Errored(http.StatusInternalServerError, err)
			}
			return admission.PatchResponseFromRaw(r.Object.Raw, raw)
		})}
		handler, err := admission.StandaloneWebhook(webhook, admission.StandaloneOptions{})
		Expect(err).NotTo(HaveOccurred())
		mux.Handle(path, handler)
	}
	handle("/mutate-ray-io-v1-raycluster", k.defaultCluster)
	handle("/pods", k.completePod)
	server := httptest.NewTLSServer(mux)
	configurations := []client.Object{
		mutatingWebhook(server, capability.PlatformKubeRayConfiguration, "mraycluster.kb.io", "/mutate-ray-io-v1-raycluster", nil,
			rule("ray.io", "v1", "rayclusters", admissionregistrationv1.Create, admissionregistrationv1.Update)),
		mutatingWebhook(server, podWebhook, "pods.example.com", "/pods", &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: raycluster.LabelCluster, Operator: metav1.LabelSelectorOpExists}},
		}, rule("", "v1", "pods", admissionregistrationv1.Create)),
	}
	env.Create(ctx, configurations...)
	running, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(running, k.reconcileAll, poll)
	}()
	k.remove = func(ctx context.Context) {
		for _, configuration := range configurations {
			Expect(client.IgnoreNotFound(env.Admin.Delete(ctx, configuration))).To(Succeed())
		}
		stop()
		<-done
	}
	DeferCleanup(func(ctx SpecContext) {
		k.remove(ctx)
		server.Close()
		for _, cluster := range list(ctx, Default, raycluster.GVK, namespace) {
			removePlatformFinalizer(ctx, &cluster)
		}
	}, NodeTimeout(specTimeout))
	return k
}

func mutatingWebhook(server *httptest.Server, configuration, name, path string, selector *metav1.LabelSelector,
	rule admissionregistrationv1.RuleWithOperations) *admissionregistrationv1.MutatingWebhookConfiguration {
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: configuration},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: name, SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ObjectSelector: selector, Rules: []admissionregistrationv1.RuleWithOperations{rule},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new(server.URL + path), CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
			},
		}},
	}
}

func rule(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}
}

// removePlatformFinalizer removes the finalizer that the KubeRay of the platform leaves behind.
func removePlatformFinalizer(ctx context.Context, cluster *unstructured.Unstructured) {
	GinkgoHelper()
	live := reference(cluster)
	Expect(client.IgnoreNotFound(env.Update(ctx, env.Admin, live, func() { controllerutil.RemoveFinalizer(live, platformFinalizer) }))).To(Succeed())
}

// defaultCluster makes the changes of its webhook for RayClusters.
func (k *platformKubeRay) defaultCluster(_ context.Context, raw []byte) (any, error) {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	annotations := u.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[trusted] = fmt.Sprint(k.openShift)
	u.SetAnnotations(annotations)
	if !k.openShift {
		return u, nil
	}
	return u, unstructured.SetNestedField(u.Object, false, "spec", "headGroupSpec", "enableIngress")
}

// completePod adds its certificates to a pod, and its proxy with another ServiceAccount to that of a head.
func (k *platformKubeRay) completePod(ctx context.Context, raw []byte) (any, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, err
	}
	name, role := pod.Labels[raycluster.LabelCluster], pod.Labels[raycluster.LabelNodeType]
	cluster := framework.Unstructured(raycluster.GVK, k.namespace, name)
	if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil || cluster.GetAnnotations()[trusted] != "true" {
		return pod, client.IgnoreNotFound(err)
	}
	volume := func(name string, source corev1.VolumeSource) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	}
	volume("ray-tls", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "ray-" + role + "-secret-" + name}})
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Env = append(containers[i].Env, corev1.EnvVar{Name: "RAY_USE_TLS", Value: "1"},
				corev1.EnvVar{Name: "RAY_TLS_SERVER_CERT", Value: "/home/ray/workspace/tls/tls.crt"})
			containers[i].VolumeMounts = append(containers[i].VolumeMounts, corev1.VolumeMount{Name: "ray-tls", MountPath: "/home/ray/workspace/tls"})
		}
	}
	if role == raycluster.NodeTypeHead {
		config := "kube-rbac-proxy-config-" + name
		volume(config, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: config}}})
		pod.Spec.ServiceAccountName = name + "-oauth-proxy-sa"
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "kube-rbac-proxy", Image: "example.com/kube-rbac-proxy:1", Ports: []corev1.ContainerPort{{Name: "https", ContainerPort: 8443}},
			Args:         []string{"--secure-listen-address=0.0.0.0:8443", "--upstream=http://127.0.0.1:8265/", "--config-file=/etc/kube-rbac-proxy/config.yaml"},
			VolumeMounts: []corev1.VolumeMount{{Name: config, MountPath: "/etc/kube-rbac-proxy/", ReadOnly: true}},
		})
	}
	return pod, nil
}

// reconcileAll reconciles the clusters of the namespace. The next call retries what fails.
func (k *platformKubeRay) reconcileAll(ctx context.Context) {
	clusters := &unstructured.UnstructuredList{}
	clusters.SetGroupVersionKind(raycluster.GVK.GroupVersion().WithKind("RayClusterList"))
	errs := []error{env.Admin.List(ctx, clusters, client.InNamespace(k.namespace))}
	for i := range clusters.Items {
		errs = append(errs, k.reconcile(ctx, &clusters.Items[i]))
	}
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		GinkgoWriter.Println("the KubeRay of the platform:", err)
	}
}

func (k *platformKubeRay) reconcile(ctx context.Context, u *unstructured.Unstructured) error {
	switch {
	case !u.GetDeletionTimestamp().IsZero():
		return k.finalize(ctx, u)
	case k.openShift && controllerutil.ContainsFinalizer(u, raycluster.Finalizer):
		return k.migrate(ctx, u)
	case u.GetAnnotations()[trusted] != "true":
		return deletePolicies(ctx, u)
	case controllerutil.AddFinalizer(u, platformFinalizer):
		return env.Admin.Update(ctx, u)
	}
	for _, object := range k.objects(u) {
		if err := client.IgnoreAlreadyExists(env.Admin.Create(ctx, object)); err != nil {
			return err
		}
	}
	for _, policy := range k.policies(u) {
		if err := takeOver(ctx, u, policy); err != nil {
			return err
		}
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	if slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "AuthenticationReady" }) {
		return nil
	}
	conditions = append(conditions, map[string]any{
		"type": "AuthenticationReady", "status": "True", "reason": "AuthenticationResourcesCreated", "message": "",
		"lastTransitionTime": "2026-01-01T00:00:00Z",
	})
	if err := unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	return env.Admin.Status().Update(ctx, u)
}

// finalize deletes its objects that have no owner, and removes its finalizer.
func (k *platformKubeRay) finalize(ctx context.Context, u *unstructured.Unstructured) error {
	if !controllerutil.RemoveFinalizer(u, platformFinalizer) {
		return nil
	}
	for _, object := range k.objects(u) {
		if err := client.IgnoreNotFound(env.Admin.Delete(ctx, object)); err != nil {
			return err
		}
	}
	return env.Admin.Update(ctx, u)
}

// migrate takes a cluster over that has the finalizer of the CodeFlare operator, which is that of this operator too: it deletes policies, CA
// and everything with the label of the cluster, and removes finalizer and ServiceAccount. Other additions to pod templates are left to the
// webhook of this operator.
func (k *platformKubeRay) migrate(ctx context.Context, u *unstructured.Unstructured) error {
	errs := []error{deletePolicies(ctx, u)}
	labelled := client.MatchingLabels{raycluster.LabelClusterName: u.GetName()}
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, route} {
		errs = append(errs, env.Admin.DeleteAllOf(ctx, kind, client.InNamespace(u.GetNamespace()), labelled))
	}
	errs = append(errs, env.Admin.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, labelled))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(u, raycluster.Finalizer)
	unstructured.RemoveNestedField(u.Object, "spec", "headGroupSpec", "template", "spec", "serviceAccountName")
	return env.Admin.Update(ctx, u)
}

// objects returns the objects that it creates, and never changes; Secrets are those that cert-manager issues for it.
func (k *platformKubeRay) objects(u *unstructured.Unstructured) []client.Object {
	name, namespace, platform := u.GetName(), u.GetNamespace(), env.Installed.ServiceAccount.Namespace
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	route := framework.Manifest(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: %s, namespace: %s}, spec: {
		parentRefs: [{name: data-science-gateway, namespace: openshift-ingress}], rules: [{matches: [{path: {type: PathPrefix, value: /ray/%s/%s}}],
		backendRefs: [{name: %s-head-svc, namespace: %s, port: 8265}]}]}}`, namespace+"-"+name, platform, namespace, name, name, namespace)
	grant := framework.Manifest(`{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: %s, namespace: %s}, spec: {
		from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: %s}], to: [{group: "", kind: Service}]}}`, gatewayGrant, namespace, platform)
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: at(name + "-oauth-proxy-sa")},
		&corev1.ConfigMap{ObjectMeta: at("kube-rbac-proxy-config-" + name), Data: map[string]string{"config.yaml": "authorization: {}"}},
		grant, route,
	}
	for _, secret := range []string{"ray-ca-secret-", "ray-head-secret-", "ray-worker-secret-"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: at(secret + name)})
	}
	return objects
}

// policies returns its NetworkPolicies, whose names are those of the CodeFlare operator.
func (k *platformKubeRay) policies(u *unstructured.Unstructured) []*networkingv1.NetworkPolicy {
	from := func(node string, rules ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
		selector := map[string]string{raycluster.LabelCluster: u.GetName()}
		same := networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: selector}}}}
		return networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{raycluster.LabelCluster: u.GetName(), raycluster.LabelNodeType: node}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: append([]networkingv1.NetworkPolicyIngressRule{same}, rules...),
		}
	}
	proxy := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(8443))}}}
	labels := map[string]string{raycluster.LabelCluster: u.GetName(), "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
	return []*networkingv1.NetworkPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName() + "-head", Labels: labels}, Spec: from(raycluster.NodeTypeHead, proxy)},
		{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName() + "-workers", Labels: labels}, Spec: from(raycluster.NodeTypeWorker)},
	}
}

// deletePolicies deletes the NetworkPolicies with its names, also those that it did not create.
func deletePolicies(ctx context.Context, u *unstructured.Unstructured) error {
	var errs []error
	for _, suffix := range []string{"-head", "-workers"} {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName() + suffix}}
		errs = append(errs, client.IgnoreNotFound(env.Admin.Delete(ctx, policy)))
	}
	return errors.Join(errs...)
}

// takeOver creates a policy, or replaces labels and spec of an existing one.
func takeOver(ctx context.Context, u *unstructured.Unstructured, policy *networkingv1.NetworkPolicy) error {
	existing := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: policy.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, env.Admin, existing, func() error {
		if existing.Labels = policy.Labels; !equality.Semantic.DeepEqual(existing.Spec, policy.Spec) {
			existing.Spec = policy.Spec
		}
		return controllerutil.SetControllerReference(u, existing, env.Scheme)
	})
	return err
}
