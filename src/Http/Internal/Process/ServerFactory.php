<?php

declare(strict_types=1);

namespace Spindle\Http\Internal\Process;

use Psr\Log\LoggerInterface;
use Psr\Log\NullLogger;
use Revolt\EventLoop;
use Spindle\Http\Admin;
use Spindle\Http\AppException;
use Spindle\Http\Application;
use Spindle\Http\HttpServer;
use Spindle\Http\HttpServerOptions;
use Spindle\Http\Internal\App\AppLoader;
use Spindle\Http\Internal\Server\Certificates;
use Spindle\Http\Internal\Server\Listeners;
use Spindle\Http\ListenException;
use Spindle\Http\SupervisorOptions;
use Spindle\Internal\LoadedFiles;
use Spindle\Internal\Release;
use Spindle\Internal\ReleaseMismatchException;

/** Creates the server of a process. Has to be called in the process that runs the server. */
final readonly class ServerFactory
{
    /** Maximum seconds for which the admin server delays the shutdown, after the application has stopped. */
    private const ADMIN_STOP_TIMEOUT = 1.0;

    /** @param Release|null $release null when a reload can't switch to another release of the application */
    public function __construct(
        private string $app,
        private SupervisorOptions $options,
        private LoggerInterface $logger,
        private ?Release $release = null,
    ) {}

    /**
     * @param array<string, resource> $sockets sockets that the process serves, by address
     * @param SupervisorLink|null $link link through which the process asks to be replaced at a limit
     *
     * @throws AppException
     */
    public function application(array $sockets, ?SupervisorLink $link = null): HttpServer
    {
        $this->followRelease($sockets);
        $file = realpath($this->app); // resolved first, because the application may change the working directory
        $loop = EventLoop::getDriver();
        $application = AppLoader::load($this->app);
        if ($link !== null && EventLoop::getDriver() !== $loop) {
            throw AppException::withOtherLoop($this->app);
        }
        $this->addCertificates($sockets, $application->options);
        $this->checkDescriptors($sockets);
        if ($file !== false) {
            // A WorkerPool sends closures as source text. Deployments may replace the file, so its loaded text is kept.
            LoadedFiles::keepText($file);
        }
        if ($link !== null && ($this->options->maxRequests ?? $this->options->maxMemoryBytes) !== null) {
            $countedHandler = ProcessLifetime::of(
                $application->handler,
                $this->options->maxRequests,
                $this->options->maxMemoryBytes,
                $link->requestReplacement(...),
            );
            $application = new Application(
                $countedHandler,
                $application->statistics,
                $application->checks,
                $application->options,
                $application->logger,
            );
        }

        return new HttpServer($application, logger: $application->logger instanceof NullLogger ? $this->logger : null);
    }

    /**
     * @param array<string, resource> $sockets
     *
     * @throws AppException when the application's options have another default certificate than the supervisor
     */
    private function addCertificates(array $sockets, HttpServerOptions $options): void
    {
        try {
            $faults = Certificates::addApplicationCertificates($sockets, $options);
        } catch (ListenException $failure) {
            throw AppException::unusable($this->app, $failure);
        }
        foreach ($faults as $name => $fault) {
            $this->logger->warning("The certificate for {$name} is not used: {$fault}");
        }
    }

    /**
     * @param array<string, resource> $sockets
     *
     * @throws AppException when the loaded application has left too few descriptors for connections
     */
    private function checkDescriptors(array $sockets): void
    {
        try {
            Listeners::checkDescriptors(str_replace('tcp://', '', array_keys($sockets)));
        } catch (ListenException $failure) {
            throw AppException::unusable($this->app, $failure);
        }
    }

    /** @param array<string, resource> $sockets sockets that the process serves, by address */
    public function admin(array $sockets, Admin $admin): HttpServer
    {
        $this->updateAdmin($sockets);
        $admin = $admin->withLogger($this->logger)->withHosts(
            self::host((string) $this->options->admin),
            ...$this->options->adminHosts,
        );

        $options = new HttpServerOptions(stopTimeout: self::ADMIN_STOP_TIMEOUT);

        return new HttpServer($this->options->statusPage ? $admin->withStatusPage() : $admin, $options, $this->logger);
    }

    /**
     * Makes the admin address use the certificate of the current release. Logs a warning if that is not possible.
     *
     * @param array<string, resource> $sockets sockets that the process serves, by address
     */
    public function updateAdmin(array $sockets): void
    {
        if (Certificates::tlsSockets($sockets) === []) {
            return;
        }
        try {
            $this->followRelease($sockets);
        } catch (AppException $failure) {
            $this->logger->warning(
                "The admin address keeps the certificate of the previous release: {$failure->getMessage()}",
            );
        }
    }

    /**
     * @param array<string, resource> $sockets
     *
     * @throws AppException
     */
    private function followRelease(array $sockets): void
    {
        if ($this->release === null) {
            return;
        }
        try {
            $this->release->changeToCurrent();
            Certificates::checkDefault($sockets, $this->options);
        } catch (ReleaseMismatchException|ListenException $failure) {
            throw AppException::unusable($this->app, $failure);
        }
        Certificates::updatePaths($sockets, $this->options);
    }

    /** @return string "operators.internal" for "tls://operators.internal:9085" */
    private static function host(string $address): string
    {
        return (string) preg_replace('~^\w+://|:\d+$~D', '', $address);
    }
}
