<?php

declare(strict_types=1);

namespace Aircraft;

use Aircraft\Http\AddAircraft;
use Aircraft\Http\DeleteAircraft;
use Aircraft\Http\DescribeApi;
use Aircraft\Http\ExportAircraft;
use Aircraft\Http\FollowAircraft;
use Aircraft\Http\GetAircraft;
use Aircraft\Http\ImportAircraft;
use Aircraft\Http\ListAircraft;
use Aircraft\Http\MakeReport;
use Aircraft\Http\NotFound;
use Aircraft\Http\Problems;
use Aircraft\Http\RenderCertificate;
use Aircraft\Http\Router;
use Aircraft\Http\Routes;
use Aircraft\Http\SecurityHeaders;
use Aircraft\Http\Sleep;
use Aircraft\Http\StreamingUnavailable;
use Aircraft\Http\UpdateAircraft;
use Pimple\Container;
use Pimple\Psr11\Container as PsrContainer;
use Psr\Http\Server\RequestHandlerInterface;
use Psr\Log\LoggerInterface;
use Spindle\Command\CommandPool;
use Spindle\Http\Application;
use Spindle\Http\Middleware\BodyLimit;
use Spindle\Http\Middleware\ErrorHandler;
use Spindle\Http\Middleware\StaticFiles;
use Spindle\Http\MiddlewareStack;
use Spindle\Postgres\PostgresOptions;
use Spindle\Postgres\PostgresPool;
use Spindle\Postgres\PostgresPoolOptions;
use Spindle\Remote\JobRetryPolicy;
use Spindle\Remote\RedisBroker;
use Spindle\Remote\RemoteExecutor;
use Spindle\Remote\RemoteOptions;
use Spindle\Worker\Executor;
use Spindle\Worker\InlineExecutor;
use Spindle\Worker\TaskRetryPolicy;
use Spindle\Worker\WorkerPool;
use Spindle\Worker\WorkerPoolOptions;

/**
 * The services of the application. Each one is created on demand, and pools start nothing before their first use.
 *
 * Only this class knows whether a process serves many requests at once, as under `spindle serve`, or one after another,
 * as under PHP-FPM and PHP's built-in server.
 */
final class Services extends Container
{
    /** Largest file to import, in bytes. */
    private const MAX_IMPORT = 1 << 30;

    /** Seconds in which changes are collected for one notification. */
    private const ANNOUNCEMENT_DELAY = 0.02;

    private const WORKERS = 2;
    private const COMMANDS = 4;

    /** Niceness of workers: requests have priority. */
    private const NICENESS = 10;

    /** Seconds after which a task is ended. */
    private const TASK_TIMEOUT = 30.0;

    private function __construct(private readonly Settings $settings)
    {
        parent::__construct();
        $this[LoggerInterface::class] = static fn(): LoggerInterface => new ErrorLog();
        $this[CommandPool::class] = static fn(): CommandPool => new CommandPool(concurrency: self::COMMANDS);
        $this[AircraftService::class] = static fn(self $it): AircraftService
            => new AircraftService($it->database(), $it->one(Announcements::class));
        $this[Transfer::class] = static fn(self $it): Transfer => new Transfer($it->database());
        $this[Reports::class] = static fn(self $it): Reports
            => new Reports($it->database(), $it->one(CommandPool::class));
        $this->defineHandlers();
    }

    /** Returns the services of a process that serves many requests at once. */
    public static function ofServer(Settings $settings): self
    {
        $services = new self($settings);
        $services[PostgresPool::class] = static fn(): PostgresPool
            => self::pool(self::databaseOptions($settings), $settings);
        $services[Announcements::class] = static fn(self $it): Announcements
            => $it->announcements(self::ANNOUNCEMENT_DELAY);
        $services[FollowAircraft::class] = static fn(self $it): FollowAircraft
            => new FollowAircraft($it->database());
        $services[Executor::class] = static fn(): Executor
            => $settings->broker === '' ? self::workers() : self::agents($settings);

        return $services;
    }

    private static function workers(): Executor
    {
        return new WorkerPool(
            self::WORKERS,
            new TaskRetryPolicy(1, onTimeout: false, onThrow: false),
            new WorkerPoolOptions(
                timeout: self::TASK_TIMEOUT,
                initialize: static fn(): bool => proc_nice(self::NICENESS),
            ),
        );
    }

    /** Returns an executor for agents on this or other machines: `spindle work --queue certificates`. */
    private static function agents(Settings $settings): Executor
    {
        return new RemoteExecutor(
            new RedisBroker($settings->broker),
            'certificates',
            retryPolicy: new JobRetryPolicy(maxAttempts: 1, maxCrashes: 2),
            options: new RemoteOptions(timeout: self::TASK_TIMEOUT, brokerRetryTimeout: $settings->wait),
        );
    }

    /**
     * Returns the services of a process that serves one request at a time and keeps only its connections between them.
     */
    public static function ofRequest(Settings $settings): self
    {
        $services = new self($settings);
        $services[PostgresPool::class] = static fn(): PostgresPool => self::pool(
            self::databaseOptions($settings)->with(['persistent' => true]),
            $settings,
        );
        $services[Announcements::class] = static fn(self $it): Announcements => $it->announcements(0.0);
        $services[FollowAircraft::class] = static fn(): StreamingUnavailable => new StreamingUnavailable();
        $services[Executor::class] = static fn(): Executor => new InlineExecutor();

        return $services;
    }

    public function application(): Application
    {
        $router = new Router(
            Routes::compiled(),
            new PsrContainer($this),
            new MiddlewareStack(new NotFound(), new StaticFiles(__DIR__ . '/../page')),
        );
        $logger = $this->one(LoggerInterface::class);
        $database = $this->database();

        return new Application(
            new MiddlewareStack($router, new SecurityHeaders(), new ErrorHandler($logger), new Problems()),
            statistics: ['database' => $database],
            checks: ['database' => static function () use ($database): void {
                $database->query('SELECT 1');
            }],
            logger: $logger,
        );
    }

    private function defineHandlers(): void
    {
        $this[ListAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new ListAircraft($it->one(AircraftService::class));
        $this[AddAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new AddAircraft($it->one(AircraftService::class));
        $this[GetAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new GetAircraft($it->one(AircraftService::class));
        $this[UpdateAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new UpdateAircraft($it->one(AircraftService::class));
        $this[DeleteAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new DeleteAircraft($it->one(AircraftService::class));
        $this[ImportAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new MiddlewareStack(new ImportAircraft($it->one(Transfer::class)), new BodyLimit(self::MAX_IMPORT));
        $this[ExportAircraft::class] = static fn(self $it): RequestHandlerInterface
            => new ExportAircraft($it->one(Transfer::class));
        $this[RenderCertificate::class] = static fn(self $it): RequestHandlerInterface
            => new RenderCertificate($it->one(AircraftService::class), $it->one(Executor::class));
        $this[MakeReport::class] = static fn(self $it): RequestHandlerInterface
            => new MakeReport($it->one(Reports::class));
        $this[Sleep::class] = static fn(self $it): RequestHandlerInterface => new Sleep($it->database());
        $this[DescribeApi::class] = static fn(): RequestHandlerInterface => new DescribeApi();
    }

    private function database(): PostgresPool
    {
        return $this->one(PostgresPool::class);
    }

    private function announcements(float $gather): Announcements
    {
        return $this->settings->announces
            ? new PostgresAnnouncements($this->database(), $this->one(LoggerInterface::class), $gather)
            : new NoAnnouncements();
    }

    /**
     * @template T of object
     *
     * @param class-string<T> $class
     *
     * @return T
     */
    private function one(string $class): object
    {
        $service = $this[$class];
        \assert($service instanceof $class);

        return $service;
    }

    private static function pool(PostgresOptions $options, Settings $settings): PostgresPool
    {
        return new PostgresPool(
            $options,
            $settings->connections,
            new PostgresPoolOptions(acquireTimeout: $settings->wait),
        );
    }

    private static function databaseOptions(Settings $settings): PostgresOptions
    {
        return PostgresOptions::fromDsn($settings->database)->with(['applicationName' => 'aircraft']);
    }
}
