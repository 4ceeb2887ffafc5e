# The first process of a box, in new namespaces. It waits for a line, which means that its cgroups and its network
# interface exist, creates the box's file system, and becomes systemd.
set -eu
read -r _
exec unshare --cgroup sh -euc '
DIR=$1 ROOTFS=$2 NAME=$3 ADDRESS=$4 GATEWAY=$5; shift 5
mount --make-rprivate /
mount -o loop,noatime,nobarrier "$DIR/disk.img" "$DIR/disk"
mkdir -p "$DIR/disk/upper" "$DIR/disk/work"
mount -t overlay overlay -o "lowerdir=$ROOTFS,upperdir=$DIR/disk/upper,workdir=$DIR/disk/work" "$DIR/root"
cd "$DIR/root"
mount -t proc -o nosuid,nodev,noexec proc proc
for at in sys sysrq-trigger; do test ! -e proc/$at || { mount --bind proc/$at proc/$at; mount -o remount,bind,ro proc/$at; }; done
mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
mkdir sys/fs/cgroup/systemd
mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
mount -t tmpfs -o mode=755,nosuid tmpfs dev
for at in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
  IFS=: read -r at major minor <<-END
	$at
	END
  mknod -m 666 "dev/$at" c "$major" "$minor"
done
touch dev/console
mount --bind "$DIR/console" dev/console
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp
mount --bind "$DIR/seed" var/lib/cloud/seed/nocloud
for at; do
  if [ -d "$at" ]; then mkdir -p ".$at"; else mkdir -p ".${at%/*}" && touch ".$at"; fi
  mount --rbind "$at" ".$at"
  mount -o remount,bind,ro ".$at"
done
ip link set lo up
ip addr add "$ADDRESS" dev eth0
ip link set eth0 up
ip route add 169.254.169.254 dev eth0
hostname "$NAME"
mkdir -p .outside
pivot_root . .outside
cd /
umount -l .outside
rmdir .outside
exec setpriv --bounding-set -sys_module,-sys_rawio,-sys_time,-mknod,-mac_admin,-mac_override,-syslog,-bpf,-perfmon \
  env -i container=rootbox PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --log-target=journal
' boot "$@"
