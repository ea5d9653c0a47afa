package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// resyncInterval is the interval between reads of the Secret and the targets without a watch event.
	resyncInterval = time.Hour
	minBackoff     = time.Second
	maxBackoff     = time.Minute
	// maxSyncAttempts is the number of attempts of a sync that conflicts with another replica.
	maxSyncAttempts = 5
	// injectionTimeout is how long readiness waits for targets that cannot be written.
	injectionTimeout = 30 * time.Second
)

// Options of an Authority. All but Labels, Targets and Dynamic are required.
type Options struct {
	// Client accesses the Secret and the targets by name, without a cache.
	Client client.Client
	// Secret contains the CA and the serving certificate.
	Secret types.NamespacedName
	// Labels are the labels of a new Secret.
	Labels map[string]string
	// DNSNames are the names of the serving certificate. The first is its common name.
	DNSNames []string
	// Targets are the objects that need the CA bundle.
	Targets []Target
	// Dynamic watches the Secret and the targets by name, so that changes of other clients are reverted immediately. Nil disables the watch.
	Dynamic dynamic.Interface
	// Clock is the clock for validity and renewal.
	Clock clock.Clock
	// Log receives renewals and errors.
	Log logr.Logger
}

// Authority issues, renews and serves the webhook certificate. It is a manager.Runnable that runs on every replica.
type Authority struct {
	Options
	current      atomic.Pointer[certificatePair]
	servingSince atomic.Pointer[time.Time] // time of the first certificate
	injected     atomic.Bool               // all targets had the CA once, or injectionTimeout has passed
	changed      chan struct{}             // signals a change of the Secret or a target
}

// NewAuthority returns an Authority without a certificate until Start or Sync is called.
func NewAuthority(o Options) *Authority {
	return &Authority{Options: o, changed: make(chan struct{}, 1)}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: webhooks serve on every replica.
func (a *Authority) NeedLeaderElection() bool { return false }

// GetCertificate is a callback of tls.Config. It returns an error before the first successful sync.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p := a.current.Load()
	if p == nil {
		return nil, errors.New("the serving certificate is not ready yet")
	}
	return p.tlsCertificate, nil
}

// Ready is a readiness check. It fails without a certificate, and until all targets contain its CA or injectionTimeout has passed. Each
// replica injects the CA itself, so replicas do not wait for each other.
func (a *Authority) Ready(*http.Request) error {
	if _, err := a.GetCertificate(nil); err != nil {
		return err
	}
	if a.injected.Load() {
		return nil
	}
	if a.Clock.Since(*a.servingSince.Load()) < injectionTimeout {
		return errors.New("not all webhook configurations contain the CA of the serving certificate yet")
	}
	if a.injected.CompareAndSwap(false, true) {
		a.Log.Info("Serving before all webhook configurations contain the CA; calls to the webhooks of the others fail until they do", "after", injectionTimeout)
	}
	return nil
}

// Start implements manager.Runnable. It returns nil when ctx ends. Failed syncs are retried with back-off: certificates are renewed after two
// thirds of their lifetime, so a retry usually succeeds while the served one is valid.
func (a *Authority) Start(ctx context.Context) error {
	var watches sync.WaitGroup
	defer watches.Wait()
	a.startWatches(ctx, &watches)
	backoff := time.Duration(0)
	for {
		pause, err := a.Sync(ctx)
		if err != nil {
			backoff = min(max(2*backoff, minBackoff), maxBackoff)
			pause = backoff
			a.Log.Error(err, "Maintaining the webhook certificate failed; retrying", "after", pause)
		} else {
			backoff = 0
		}
		if !a.waitForChange(ctx, pause) {
			return nil
		}
	}
}

// waitForChange waits for the pause or for a change of the Secret or a target. During the first minBackoff of a longer pause it does
// not react to changes, which limits the writes if another client keeps reverting them. It returns false when ctx ends.
func (a *Authority) waitForChange(ctx context.Context, pause time.Duration) bool {
	if a.Dynamic != nil && pause > minBackoff {
		if !a.wait(ctx, minBackoff, nil) {
			return false
		}
		pause -= minBackoff
	}
	return a.wait(ctx, pause, a.changed)
}

func (a *Authority) wait(ctx context.Context, pause time.Duration, changed <-chan struct{}) bool {
	timer := a.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-timer.C():
	}
	return true
}

// Sync updates the Secret and the targets once and returns the time until the next sync.
func (a *Authority) Sync(ctx context.Context) (time.Duration, error) {
	p, err := a.syncSecret(ctx)
	if err != nil {
		return 0, fmt.Errorf("syncing Secret %s: %w", a.Secret, err)
	}
	// The first certificate is served immediately, and later ones with the same CA. Those with a new CA are served after its injection, or
	// when the previous one has expired.
	now := a.Clock.Now()
	a.servingSince.CompareAndSwap(nil, &now)
	if a.current.CompareAndSwap(nil, p) {
		recordExpiry(p)
	}
	injected, err := a.injectCA(ctx, p.data[dataKeyCACert])
	if injected {
		a.injected.Store(true)
	}
	if current := a.current.Load(); injected || p.hasSameSigner(current) || now.After(current.leaf.Expires) {
		a.current.Store(p)
		recordExpiry(p)
	}
	if err != nil {
		return 0, err
	}
	return max(min(p.leaf.Next.Sub(a.Clock.Now()), resyncInterval), minBackoff), nil
}

// syncSecret reads the Secret, renews its certificates and writes it, with retries after conflicts.
func (a *Authority) syncSecret(ctx context.Context) (*certificatePair, error) {
	var desired *certificatePair
	isConflict := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err := retry.OnError(wait.Backoff{Steps: maxSyncAttempts}, isConflict, func() error {
		live := &corev1.Secret{}
		err := a.Client.Get(ctx, a.Secret, live)
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return fmt.Errorf("reading: %w", err)
		}
		if desired, err = a.desiredPair(live); err != nil || desired.matches(live.Data) {
			return err
		}
		if err := a.writeSecret(ctx, live, desired, missing); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		return nil
	})
	return desired, err
}

// desiredPair returns the desired content of the Secret. If the Secret has no usable CA, the pair keeps the served CA, which clients trust.
func (a *Authority) desiredPair(live *corev1.Secret) (*certificatePair, error) {
	now := a.Clock.Now()
	data := live.Data
	if _, err := LoadRoot(data, now); err != nil {
		if len(data) > 0 {
			a.Log.Info("Repairing the Secret of the webhook certificate", "secret", a.Secret.String(), "reason", err.Error())
		}
		if served := a.current.Load(); served != nil {
			data = served.data
		}
	}
	return ensurePair(data, a.DNSNames, now)
}

func (a *Authority) writeSecret(ctx context.Context, live *corev1.Secret, desired *certificatePair, missing bool) error {
	a.Log.Info("Issuing the webhook certificate", "secret", a.Secret.String(),
		"expires", desired.leaf.Expires, "caExpires", desired.root.Expires)
	if missing {
		return a.Client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: a.Secret.Namespace, Name: a.Secret.Name, Labels: a.Labels},
			Type:       corev1.SecretTypeTLS,
			Data:       desired.data,
		})
	}
	live.Data = desired.data
	return a.Client.Update(ctx, live) // fails with a conflict if another replica wrote the Secret after the read
}
