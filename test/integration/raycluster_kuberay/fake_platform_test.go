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
	trustedNetworkAnnotation = "odh.ray.io/secure-trusted-network"
	platformFinalizer        = "ray.io/authentication-resources"
	gatewayGrant             = "kuberay-gateway-access"
	podWebhook               = "kuberay-platform-pods"
)

// platformKubeRay fakes the additions of the KubeRay of Open Data Hub and OpenShift AI 3.x to the upstream KubeRay, which runs in this suite:
// its webhook for RayClusters, its additions to pods, which the fake makes in a webhook, and its controllers for the migration from the
// CodeFlare operator, authentication, certificates and NetworkPolicies.
type platformKubeRay struct {
	// namespace contains the clusters that it reconciles.
	namespace string
	// openShift is true if the API server served Routes when this KubeRay started.
	openShift bool
	// remove uninstalls it. Its finalizers and objects remain, as after the deletion of the real one.
	remove func(context.Context)
}

// installPlatformKubeRay starts the fake, which runs until remove is called or the spec ends.
func installPlatformKubeRay(ctx context.Context, namespace string, openShift bool) *platformKubeRay {
	GinkgoHelper()
	k := &platformKubeRay{namespace: namespace, openShift: openShift}
	mux := http.NewServeMux()
	register := func(path string, change func(context.Context, []byte) (any, error)) {
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
	register("/mutate-ray-io-v1-raycluster", k.mutateRayCluster)
	register("/pods", k.completePod)
	server := httptest.NewTLSServer(mux)
	configurations := []client.Object{
		newMutatingWebhook(server, capability.PlatformKubeRayConfiguration, "mraycluster.kb.io", "/mutate-ray-io-v1-raycluster", nil,
			newRule("ray.io", "v1", "rayclusters", admissionregistrationv1.Create, admissionregistrationv1.Update)),
		newMutatingWebhook(server, podWebhook, "pods.example.com", "/pods", &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: raycluster.LabelCluster, Operator: metav1.LabelSelectorOpExists}},
		}, newRule("", "v1", "pods", admissionregistrationv1.Create)),
	}
	env.Create(ctx, configurations...)
	running, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait.UntilWithContext(running, k.reconcileAll, pollInterval)
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
		for _, cluster := range listObjects(ctx, Default, raycluster.GVK, namespace) {
			removePlatformFinalizer(ctx, &cluster)
		}
	}, NodeTimeout(specTimeout))
	return k
}

func newMutatingWebhook(server *httptest.Server, configuration, name, path string, selector *metav1.LabelSelector,
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

func newRule(group, version, resource string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
	return admissionregistrationv1.RuleWithOperations{
		Operations: operations, Rule: admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}
}

// removePlatformFinalizer removes the finalizer of the KubeRay of the platform, which remains after remove was called.
func removePlatformFinalizer(ctx context.Context, cluster *unstructured.Unstructured) {
	GinkgoHelper()
	live := reference(cluster)
	Expect(client.IgnoreNotFound(env.Update(ctx, env.Admin, live, func() { controllerutil.RemoveFinalizer(live, platformFinalizer) }))).To(Succeed())
}

// mutateRayCluster mutates RayClusters like the webhook of the real KubeRay.
func (k *platformKubeRay) mutateRayCluster(_ context.Context, raw []byte) (any, error) {
	rayCluster := &unstructured.Unstructured{}
	if err := rayCluster.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	annotations := rayCluster.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[trustedNetworkAnnotation] = fmt.Sprint(k.openShift)
	rayCluster.SetAnnotations(annotations)
	if !k.openShift {
		return rayCluster, nil
	}
	return rayCluster, unstructured.SetNestedField(rayCluster.Object, false, "spec", "headGroupSpec", "enableIngress")
}

// completePod adds certificates to each Ray pod, and a proxy and another ServiceAccount to head pods.
func (k *platformKubeRay) completePod(ctx context.Context, raw []byte) (any, error) {
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, err
	}
	name, role := pod.Labels[raycluster.LabelCluster], pod.Labels[raycluster.LabelNodeType]
	cluster := framework.Unstructured(raycluster.GVK, k.namespace, name)
	if err := env.Admin.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); err != nil || cluster.GetAnnotations()[trustedNetworkAnnotation] != "true" {
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

// reconcileAll reconciles the clusters of the namespace. The next call retries failures.
func (k *platformKubeRay) reconcileAll(ctx context.Context) {
	clusters := &unstructured.UnstructuredList{}
	clusters.SetGroupVersionKind(raycluster.GVK.GroupVersion().WithKind("RayClusterList"))
	errs := []error{env.Admin.List(ctx, clusters, client.InNamespace(k.namespace))}
	for i := range clusters.Items {
		errs = append(errs, k.reconcile(ctx, &clusters.Items[i]))
	}
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		GinkgoWriter.Println("the fake KubeRay of the platform failed:", err)
	}
}

func (k *platformKubeRay) reconcile(ctx context.Context, rayCluster *unstructured.Unstructured) error {
	switch {
	case !rayCluster.GetDeletionTimestamp().IsZero():
		return k.finalize(ctx, rayCluster)
	case k.openShift && controllerutil.ContainsFinalizer(rayCluster, raycluster.Finalizer):
		return k.migrate(ctx, rayCluster)
	case rayCluster.GetAnnotations()[trustedNetworkAnnotation] != "true":
		return deletePolicies(ctx, rayCluster)
	case controllerutil.AddFinalizer(rayCluster, platformFinalizer):
		return env.Admin.Update(ctx, rayCluster)
	}
	for _, object := range k.objects(rayCluster) {
		if err := client.IgnoreAlreadyExists(env.Admin.Create(ctx, object)); err != nil {
			return err
		}
	}
	for _, policy := range k.policies(rayCluster) {
		if err := createOrReplace(ctx, rayCluster, policy); err != nil {
			return err
		}
	}
	conditions, _, _ := unstructured.NestedSlice(rayCluster.Object, "status", "conditions")
	if slices.ContainsFunc(conditions, func(c any) bool { return c.(map[string]any)["type"] == "AuthenticationReady" }) {
		return nil
	}
	conditions = append(conditions, map[string]any{
		"type": "AuthenticationReady", "status": "True", "reason": "AuthenticationResourcesCreated", "message": "",
		"lastTransitionTime": "2026-01-01T00:00:00Z",
	})
	if err := unstructured.SetNestedSlice(rayCluster.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	return env.Admin.Status().Update(ctx, rayCluster)
}

// finalize deletes its objects, which have no owner, and removes its finalizer.
func (k *platformKubeRay) finalize(ctx context.Context, rayCluster *unstructured.Unstructured) error {
	if !controllerutil.RemoveFinalizer(rayCluster, platformFinalizer) {
		return nil
	}
	for _, object := range k.objects(rayCluster) {
		if err := client.IgnoreNotFound(env.Admin.Delete(ctx, object)); err != nil {
			return err
		}
	}
	return env.Admin.Update(ctx, rayCluster)
}

// migrate takes over a cluster with the finalizer of the CodeFlare operator, which this operator uses too. It deletes the policies and the
// objects with the label of the cluster, and removes the finalizer and the serviceAccountName. The webhook of this operator removes the other
// additions to the pod templates.
func (k *platformKubeRay) migrate(ctx context.Context, rayCluster *unstructured.Unstructured) error {
	errs := []error{deletePolicies(ctx, rayCluster)}
	hasLabel := client.MatchingLabels{raycluster.LabelClusterName: rayCluster.GetName()}
	route := &unstructured.Unstructured{}
	route.SetGroupVersionKind(capability.Route)
	for _, kind := range []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}, route} {
		errs = append(errs, env.Admin.DeleteAllOf(ctx, kind, client.InNamespace(rayCluster.GetNamespace()), hasLabel))
	}
	errs = append(errs, env.Admin.DeleteAllOf(ctx, &rbacv1.ClusterRoleBinding{}, hasLabel))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(rayCluster, raycluster.Finalizer)
	unstructured.RemoveNestedField(rayCluster.Object, "spec", "headGroupSpec", "template", "spec", "serviceAccountName")
	return env.Admin.Update(ctx, rayCluster)
}

// objects returns the objects that the platform creates and never updates, including the Secrets of cert-manager.
func (k *platformKubeRay) objects(rayCluster *unstructured.Unstructured) []client.Object {
	name, namespace, platform := rayCluster.GetName(), rayCluster.GetNamespace(), env.Installed.ServiceAccount.Namespace
	objectMeta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	route := framework.Manifest(`{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: %s, namespace: %s}, spec: {
		parentRefs: [{name: data-science-gateway, namespace: openshift-ingress}], rules: [{matches: [{path: {type: PathPrefix, value: /ray/%s/%s}}],
		backendRefs: [{name: %s-head-svc, namespace: %s, port: 8265}]}]}}`, namespace+"-"+name, platform, namespace, name, name, namespace)
	grant := framework.Manifest(`{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: %s, namespace: %s}, spec: {
		from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: %s}], to: [{group: "", kind: Service}]}}`, gatewayGrant, namespace, platform)
	objects := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: objectMeta(name + "-oauth-proxy-sa")},
		&corev1.ConfigMap{ObjectMeta: objectMeta("kube-rbac-proxy-config-" + name), Data: map[string]string{"config.yaml": "authorization: {}"}},
		grant, route,
	}
	for _, secret := range []string{"ray-ca-secret-", "ray-head-secret-", "ray-worker-secret-"} {
		objects = append(objects, &corev1.Secret{ObjectMeta: objectMeta(secret + name)})
	}
	return objects
}

// policies returns the NetworkPolicies of the platform, whose names are those of the CodeFlare operator.
func (k *platformKubeRay) policies(rayCluster *unstructured.Unstructured) []*networkingv1.NetworkPolicy {
	policySpec := func(node string, rules ...networkingv1.NetworkPolicyIngressRule) networkingv1.NetworkPolicySpec {
		selector := map[string]string{raycluster.LabelCluster: rayCluster.GetName()}
		fromCluster := networkingv1.NetworkPolicyIngressRule{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: selector}}}}
		return networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{raycluster.LabelCluster: rayCluster.GetName(), raycluster.LabelNodeType: node}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, Ingress: append([]networkingv1.NetworkPolicyIngressRule{fromCluster}, rules...),
		}
	}
	proxy := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(8443))}}}
	labels := map[string]string{raycluster.LabelCluster: rayCluster.GetName(), "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/created-by": "kuberay-operator"}
	return []*networkingv1.NetworkPolicy{
		{ObjectMeta: metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName() + "-head", Labels: labels}, Spec: policySpec(raycluster.NodeTypeHead, proxy)},
		{ObjectMeta: metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName() + "-workers", Labels: labels}, Spec: policySpec(raycluster.NodeTypeWorker)},
	}
}

// deletePolicies deletes the NetworkPolicies with these names, even if another operator created them.
func deletePolicies(ctx context.Context, rayCluster *unstructured.Unstructured) error {
	var errs []error
	for _, suffix := range []string{"-head", "-workers"} {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName() + suffix}}
		errs = append(errs, client.IgnoreNotFound(env.Admin.Delete(ctx, policy)))
	}
	return errors.Join(errs...)
}

// createOrReplace creates a policy, or replaces the labels and the spec of an existing one.
func createOrReplace(ctx context.Context, rayCluster *unstructured.Unstructured, policy *networkingv1.NetworkPolicy) error {
	existing := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: policy.Namespace, Name: policy.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, env.Admin, existing, func() error {
		if existing.Labels = policy.Labels; !equality.Semantic.DeepEqual(existing.Spec, policy.Spec) {
			existing.Spec = policy.Spec
		}
		return controllerutil.SetControllerReference(rayCluster, existing, env.Scheme)
	})
	return err
}
