package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/odh-platform/odh-platform-operator/test/cluster"
)

// ticksPerSecond is the number of clock ticks, the unit of /proc/PID/stat, in a second.
const ticksPerSecond = 100

// processorTimes holds the processor time of the manager and of the other processes of the instance since their start, in seconds, by name.
type processorTimes map[string]float64

// processorTime reads the processor times. Unlike durations, they do not depend on the load of the machine.
func (b *bench) processorTime() (processorTimes, error) {
	times := processorTimes{}
	for _, p := range append(b.instance.Processes(), &cluster.Process{Name: "manager", PID: b.manager.Process.PID}) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
		if err != nil {
			continue // the process has exited
		}
		_, after, _ := strings.Cut(string(text), ") ") // the name may contain spaces
		fields := strings.Fields(after)
		user, userErr := strconv.ParseFloat(fields[11], 64)
		system, systemErr := strconv.ParseFloat(fields[12], 64)
		if err := errors.Join(userErr, systemErr); err != nil {
			return nil, fmt.Errorf("reading the processor time of %s: %w", p.Name, err)
		}
		times[p.Name] = (user + system) / ticksPerSecond
	}
	return times, nil
}

// since returns the differences from earlier times, the largest first.
func (t processorTimes) since(earlier processorTimes) string {
	used := func(name string) float64 { return t[name] - earlier[name] }
	var texts []string
	for _, name := range slices.SortedFunc(maps.Keys(t), func(a, b string) int { return cmp.Compare(used(b), used(a)) }) {
		if used(name) >= 1./ticksPerSecond {
			texts = append(texts, fmt.Sprintf("%s %.2f s", name, used(name)))
		}
	}
	return strings.Join(texts, ", ")
}

// profileSeconds is the length of the CPU profiles, which start with a burst or after a restart.
const profileSeconds = 8

// saveProfile stores a profile of the manager or the API server in a file.
func (b *bench) saveProfile(ctx context.Context, client *http.Client, base, path, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(base, "/")+"/debug/pprof/"+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("requesting a profile: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("requesting a profile: %w", err)
	}
	defer func() { _ = response.Body.Close() }() // the body has been read
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	if err != nil {
		return fmt.Errorf("reading profile %s: %w", path, err)
	}
	return os.WriteFile(filepath.Join(b.profiles, file), data, 0o600)
}

// managerURL returns the address of the metrics of the manager: HTTPS if it also serves profiles, which need authentication.
func (b *bench) managerURL() string {
	if b.profiles != "" {
		return b.manager.MetricsURL
	}
	return strings.Replace(b.manager.MetricsURL, "https:", "http:", 1)
}

// authorizeProfiles gives b.http the token of an administrator, which the manager requires for profiles.
func (b *bench) authorizeProfiles(ctx context.Context) error {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "profiler"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account.Name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	token := &authenticationv1.TokenRequest{}
	if err := cmp.Or(b.admin.Create(ctx, account), b.admin.Create(ctx, binding), b.admin.SubResource("token").Create(ctx, account, token)); err != nil {
		return fmt.Errorf("creating an account for profiles: %w", err)
	}
	config := &rest.Config{BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{Insecure: true}} // the manager signs its certificate itself
	var err error
	b.http, err = rest.HTTPClientFor(config)
	return err
}

// startCPUProfiles starts CPU profiles of manager and API server, and returns a function that waits for their end.
func (b *bench) startCPUProfiles(ctx context.Context, name string) (wait func(), err error) {
	if b.profiles == "" {
		return func() {}, nil
	}
	config, err := b.instance.Config()
	if err != nil {
		return nil, err
	}
	server, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for profiles: %w", err)
	}
	path := fmt.Sprintf("profile?seconds=%d", profileSeconds)
	group := &sync.WaitGroup{}
	save := func(client *http.Client, base, file string) {
		group.Go(func() {
			if err := b.saveProfile(ctx, client, base, path, file); err != nil {
				fmt.Fprintln(os.Stderr, "bench:", err)
			}
		})
	}
	save(b.http, b.managerURL(), name+"-manager.cpu")
	save(server, config.Host, name+"-apiserver.cpu")
	return group.Wait, nil
}

// profileHeap stores the heap profile of the manager.
func (b *bench) profileHeap(ctx context.Context, name string) error {
	if b.profiles == "" {
		return nil
	}
	return b.saveProfile(ctx, b.http, b.managerURL(), "heap?gc=1", name+"-manager.heap")
}
