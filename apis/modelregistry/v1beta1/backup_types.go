package v1beta1

// DefaultBackups is the number of backups that are kept if spec.postgres.backup.keep is not set.
const DefaultBackups int32 = 7

// PostgresBackup configures backups of a generated database. They are stored on a separate PersistentVolumeClaim,
// which the operator never deletes, not even with the registry.
type PostgresBackup struct {
	// schedule is a cron expression, for example "15 3 * * *", or a macro such as @daily. The fields are minute, hour, day
	// of the month, month and day of the week. Times are in UTC.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(@(yearly|annually|monthly|weekly|daily|midnight|hourly)|([0-9A-Za-z*/,?-]+ +){4}[0-9A-Za-z*/,?-]+)$')`,message="schedule must have five fields (minute, hour, day of the month, month and day of the week), such as '15 3 * * *', or be one of @hourly, @daily, @weekly, @monthly and @yearly"
	Schedule string `json:"schedule"`

	// keep is the number of backups to keep. Defaults to 7. After each new backup, the oldest backups beyond this number
	// are deleted.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Keep *int32 `json:"keep,omitempty"`

	// suspend stops new backups if true. Defaults to false. Existing backups are kept.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// storage describes the PersistentVolumeClaim for the backups. Defaults to 5Gi of the default StorageClass. Increasing
	// the size expands the volume if its StorageClass allows expansion.
	// +optional
	Storage *PostgresStorage `json:"storage,omitempty"`
}
